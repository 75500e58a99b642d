"""Settings: what is accepted, what is refused with which advice, and how text is read."""

import itertools
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.cluster.errors import SettingError
from planner.cluster.files import packaged_rows
from planner.cluster.releases import REFERENCE, Switch, _order, release, settings_of
from planner.cluster.setting import Setting
from planner.cluster.settings import Settings

SETTINGS = tuple(REFERENCE.settings.values())
NUMBERS = [
    setting for setting in REFERENCE.settings.values() if setting.kind in {"int", "long", "double", "optional double"}
]
INTEGER_LIMITS = {"int": 2**31 - 1, "long": 2**63 - 1}


def by_name(setting: Setting) -> str:
    return setting.name


class TestCatalog:
    def test_no_release_has_a_setting_twice(self) -> None:
        spans: dict[str, list[tuple[str, str]]] = {}
        for row in packaged_rows("planner.cluster", "settings.csv"):
            spans.setdefault(row["name"], []).append((row["since"], row["until"]))
        for name, found in spans.items():
            assert found[0][1] == "", f"{name}: the newest row comes first and has no end"
            for (since, _), (_, until) in itertools.pairwise(found):
                assert until, name
                assert _order(until) <= _order(since), name

    @pytest.mark.parametrize(
        ("text", "number"), [("1.0f", 1.0), (" 2.5D ", 2.5), (".5", 0.5), ("5.", 5.0), ("1e1", 10.0)]
    )
    def test_reads_numbers_as_java_does(self, text: str, number: float) -> None:
        assert REFERENCE.settings["loadBalancerCPUResourceWeight"].parse(text) == number

    @pytest.mark.parametrize("text", ["1_0", "1,5", "one", "\u0661", "1.0ff", "inf", "e1", "."])
    def test_refuses_numbers_that_java_refuses(self, text: str) -> None:
        with pytest.raises(SettingError, match="is not a valid value"):
            REFERENCE.settings["loadBalancerCPUResourceWeight"].parse(text)

    @pytest.mark.parametrize("setting", REFERENCE.settings.values(), ids=by_name)
    def test_accepts_what_pulsar_ships(self, setting: Setting) -> None:
        assert setting.parse(setting.default) == setting.default
        assert setting.meaning.endswith(".") or "." in setting.meaning
        for version in ("2.7.5", "3.0.7", "4.0.8"):
            known, others = settings_of(version)
            assert (known.get(setting.name) or others[setting.name]).kind == setting.kind

    @pytest.mark.parametrize("setting", NUMBERS, ids=by_name)
    def test_bounds_hold(self, setting: Setting) -> None:
        if setting.minimum is None:
            assert "0 or less turns it off" in setting.note
            assert setting.parse(-1.0) == -1.0
        else:
            assert setting.parse(setting.minimum) == setting.minimum
            with pytest.raises(SettingError):
                setting.parse(setting.minimum - 1)
        if setting.kind in INTEGER_LIMITS:
            assert setting.maximum is not None
            assert setting.maximum <= INTEGER_LIMITS[setting.kind]
            assert setting.parse(setting.maximum) == setting.maximum
            with pytest.raises(SettingError, match="is not a valid value"):
                setting.parse(int(setting.maximum) + 1)
        for value in (math.nan, math.inf):
            with pytest.raises(SettingError):
                setting.parse(value)

    @pytest.mark.parametrize("name", ["loadBalancerSheddingIntervalMinutes", "statsUpdateFrequencyInSecs"])
    def test_no_interval_of_nothing(self, name: str) -> None:
        with pytest.raises(SettingError):
            Settings({name: 0})

    def test_shares_that_pulsar_takes_are_taken(self) -> None:
        """Its `ServiceConfiguration` has no bounds for them, and brokers calculate with what they are given."""
        for name in ("loadBalancerHistoryResourcePercentage", "maxUnloadPercentage"):
            assert Settings({name: 90}).number(name) == 90.0
            with pytest.raises(SettingError, match="or more"):
                Settings({name: -0.1})

    def test_values_that_switch_off_are_kept(self) -> None:
        off = {
            "loadBalancerNamespaceBundleMaxSessions": -1,
            "loadBalancerMaxNumberOfBundlesInBundleLoadReport": -1,
            "managedLedgerCursorBackloggedThreshold": -1,
            "dispatchThrottlingRatePerTopicInMsg": -1,
            "loadBalancerMsgRateDifferenceShedderThreshold": 0,
        }
        assert dict(Settings(off).overrides) == off

    def test_names_of_classes_and_algorithms_are_free(self) -> None:
        """Pulsar falls back, or fails at its start, for names that it does not know."""
        free = Settings({"defaultNamespaceBundleSplitAlgorithm": "mine", "loadBalancerLoadSheddingStrategy": "a.b.C"})
        assert free.text("defaultNamespaceBundleSplitAlgorithm") == "mine"

    def test_choices(self) -> None:
        with pytest.raises(SettingError, match="MetadataStoreToSystemTopicSyncer"):
            Settings({"loadBalancerServiceUnitTableViewSyncer": "Nobody"})


class TestReleases:
    def test_defaults_and_names_of_a_release_are_its_own(self) -> None:
        strategy = "loadBalancerLoadSheddingStrategy"
        old, new = settings_of("2.7.5")[0][strategy], settings_of("2.10.5")[0][strategy]
        assert (str(old.default).rpartition(".")[2], old.dynamic) == ("OverloadShedder", False)
        assert (str(new.default).rpartition(".")[2], new.dynamic) == ("ThresholdShedder", True)
        assert old.meaning == new.meaning
        assert "cacheEvictionByExpectedReadCount" not in settings_of("4.0.8")[0]
        assert len(settings_of("2.7.5")[0]) < len(REFERENCE.settings) == 102

    @pytest.mark.parametrize(
        ("decided_by", "versions"),
        {
            "3.0.0": ["2.7.5", "3.0.0", "3.0.1"],
            "3.0.2": ["3.0.6"],
            "3.0.7": ["3.0", "3.0.7", "3.0.7-SNAPSHOT", "3.0.9"],
            "3.1.2": ["3.1", "3.1.2", "3.1.3"],
            "3.3.5": ["3.3", "3.3.5", "3.3.9"],
            "4.0.1": ["4.0.1", "4.0.3"],
            "4.0.8": ["4.0", "4.0.8", "4.1.0"],
            "4.2.4": ["4.2", "4.2.4", "4.2.4-SNAPSHOT", "4.3.0", "", "unknown"],
            "5.0.0-M1": ["5.0.0", "5.0.0-M1"],
            "5.0.1": ["5.0", "5.0.1", "5.1.0", "17"],
            "next": ["next"],
        }.items(),
    )
    def test_any_version_is_decided_by_a_known_release(self, decided_by: str, versions: list[str]) -> None:
        assert {release(version).name for version in versions} == {decided_by}

    def test_the_release_to_come_has_its_defaults(self) -> None:
        coming, newest = Settings({}, release("next")), Settings({}, release("5.0.1"))
        changed = {name: coming[name] for name in coming if coming[name] != newest[name]}
        strategy = "org.apache.pulsar.broker.loadbalance.impl.AvgShedder"
        assert changed == {
            "loadBalancerLoadSheddingStrategy": strategy,
            "loadBalancerLoadPlacementStrategy": strategy,
            "defaultNumberOfNamespaceBundles": 32,
        }
        assert dict(newest) == dict(Settings({}, release("5.0.0-M1")))
        assert coming.release.major == newest.release.major == 5

    def test_nothing_names_a_release_but_the_reference(self) -> None:
        assert Settings().release is REFERENCE
        assert REFERENCE.name == "4.2.4"

    def test_settings_know_their_release(self) -> None:
        other = release("4.0.8")
        config = Settings({"loadBalancerEnabled": False}, other)
        assert config.changed(loadBalancerEnabled=True).release is other
        assert config != Settings({"loadBalancerEnabled": False})

    def test_a_setting_of_another_release_is_kept_and_does_nothing(self) -> None:
        config = Settings({"cacheEvictionByExpectedReadCount": True}, release("4.0.8"))
        assert config.without_effect == ("cacheEvictionByExpectedReadCount",)
        assert "cacheEvictionByExpectedReadCount" not in config
        assert not config.flag("cacheEvictionByExpectedReadCount")
        assert config == Settings({}, release("4.0.8"))
        assert Settings(config.overrides).flag("cacheEvictionByExpectedReadCount")
        with pytest.raises(SettingError, match=r"Pulsar 4\.0\.8 has no such"):
            Settings({"noSuchSetting": True}, release("4.0.8"))

    def test_what_is_the_default_of_one_release_only_is_kept_for_the_others(self) -> None:
        weight = "loadBalancerDirectMemoryResourceWeight"
        old = Settings({weight: 1.0}, release("3.0.7"))
        assert old == Settings({}, release("3.0.7"))
        assert Settings(old.overrides).number(weight) == 1.0
        assert Settings({weight: 0.0}, release("3.0.7")).overrides == {weight: 0.0}
        assert Settings({weight: 0.0}).overrides == {}

    @pytest.mark.parametrize(
        ("since", "until", "had"),
        [("", "", [1, 1, 1]), ("4.0.0", "", [0, 1, 1]), ("", "4.2.0", [1, 1, 0]), ("4.0.0", "5.0", [0, 1, 1])],
    )
    def test_a_switch_says_which_releases_have_a_rule(self, since: str, until: str, had: list[int]) -> None:
        switch = Switch("A rule.", since, until)
        assert [release(name).has(switch) for name in ("3.0.7", "4.0.8", "4.2.4")] == [bool(one) for one in had]


class TestUnknownNames:
    @pytest.mark.parametrize(
        ("name", "meant"),
        [
            ("loadBalancerSheddingInterval", "loadBalancerSheddingIntervalMinutes"),
            ("load_balancer_enabled", "loadBalancerEnabled"),
            ("LOADBALANCERENABLED", "loadBalancerEnabled"),
            ("loadBalancerBandwithInResourceWeigth", "loadBalancerBandwithInResourceWeight"),
        ],
    )
    def test_the_nearest_is_told(self, name: str, meant: str) -> None:
        with pytest.raises(SettingError) as caught:
            Settings({name: 1})
        assert caught.value.where == name
        assert meant in caught.value.remedy

    def test_nothing_is_near(self) -> None:
        with pytest.raises(SettingError, match="no such load-balancer setting") as caught:
            Settings({"zzz": 1})
        assert "What-if page" in caught.value.remedy


class TestTextForms:
    @pytest.mark.parametrize(
        ("name", "text", "value"),
        [
            ("loadBalancerEnabled", "false", False),
            ("loadBalancerEnabled", " TRUE ", True),
            ("loadBalancerNamespaceBundleMaxTopics", "+50", 50),
            ("loadBalancerNamespaceBundleMaxTopics", " -1 ", -1),
            ("loadBalancerNamespaceBundleMaxTopics", 50.0, 50),
            ("loadBalancerSheddingGracePeriodMinutes", "0", 0),
            ("loadBalancerHistoryResourcePercentage", "0.25", 0.25),
            ("loadBalancerHistoryResourcePercentage", "1e-1", 0.1),
            ("loadBalancerHistoryResourcePercentage", 1, 1.0),
            ("loadBalancerOverrideBrokerNicSpeedGbps", "Optional[2.5]", 2.5),
            ("loadBalancerOverrideBrokerNicSpeedGbps", "Optional.empty", None),
            ("loadBalancerOverrideBrokerNicSpeedGbps", "", None),
            ("loadBalancerOverrideBrokerNicSpeedGbps", None, None),
            ("loadBalancerOverrideBrokerNicSpeedGbps", 10, 10.0),
            ("loadBalancerSheddingExcludedNamespaces", "a/b, c/d,", ("a/b", "c/d")),
            ("loadBalancerSheddingExcludedNamespaces", "[a/b, c/d]", ("a/b", "c/d")),
            ("loadBalancerSheddingExcludedNamespaces", "", ()),
            ("loadBalancerSheddingExcludedNamespaces", ["a/b"], ("a/b",)),
            ("loadBalancerLoadSheddingStrategy", " x.Y ", "x.Y"),
        ],
    )
    def test_read(self, name: str, text: object, value: object) -> None:
        read = Settings({name: text})[name]
        assert read == value
        assert type(read) is type(value)

    @pytest.mark.parametrize(
        ("name", "text"),
        [
            ("loadBalancerEnabled", "yes"),
            ("loadBalancerEnabled", 1),
            ("loadBalancerNamespaceBundleMaxTopics", "1.5"),
            ("loadBalancerNamespaceBundleMaxTopics", 1.5),
            ("loadBalancerNamespaceBundleMaxTopics", True),
            ("loadBalancerNamespaceBundleMaxTopics", ""),
            ("loadBalancerNamespaceBundleMaxTopics", None),
            ("loadBalancerNamespaceBundleMaxTopics", "--5"),
            ("loadBalancerNamespaceBundleMaxTopics", "5" * 5000),
            ("loadBalancerHistoryResourcePercentage", 10**400),
            ("loadBalancerHistoryResourcePercentage", "a"),
            ("loadBalancerHistoryResourcePercentage", "nan"),
            ("loadBalancerHistoryResourcePercentage", None),
            ("loadBalancerHistoryResourcePercentage", False),
            ("loadBalancerSheddingExcludedNamespaces", [1]),
            ("loadBalancerLoadSheddingStrategy", 5),
        ],
    )
    def test_refused(self, name: str, text: object) -> None:
        with pytest.raises(SettingError) as caught:
            Settings({name: text})
        assert caught.value.where == name
        assert caught.value.remedy

    def test_a_number_that_cannot_be_printed(self) -> None:
        with pytest.raises(SettingError, match="This number"):
            Settings({"loadBalancerNamespaceBundleMaxTopics": 10**5000})

    @given(
        st.sampled_from(SETTINGS),
        st.text() | st.integers() | st.floats() | st.none() | st.lists(st.text()),
    )
    def test_anything_is_read_or_refused(self, setting: Setting, value: Any) -> None:
        try:
            read = Settings({setting.name: value})
        except SettingError:
            return
        assert Settings(dict(read.overrides)) == read


class TestSettings:
    def test_only_what_differs_is_kept(self) -> None:
        config = Settings({"loadBalancerEnabled": "true", "loadBalancerNamespaceBundleMaxTopics": 5})
        assert dict(config.overrides) == {"loadBalancerNamespaceBundleMaxTopics": 5}
        assert config["loadBalancerNamespaceBundleMaxSessions"] == 1000
        assert len(config) == len(list(config)) == len(REFERENCE.settings.values())

    def test_equal_when_the_same_is_in_force(self) -> None:
        one = Settings({"loadBalancerNamespaceBundleMaxTopics": "5"})
        other = Settings().changed(loadBalancerNamespaceBundleMaxTopics=5, loadBalancerEnabled=True)
        assert one == other
        assert hash(one) == hash(other)
        assert one != Settings()
        assert one != {"loadBalancerNamespaceBundleMaxTopics": 5}
        assert one.changed(loadBalancerNamespaceBundleMaxTopics=1000) == Settings()

    def test_frozen(self) -> None:
        config = Settings({"loadBalancerNamespaceBundleMaxTopics": 5})
        with pytest.raises(TypeError):
            config.overrides["loadBalancerNamespaceBundleMaxTopics"] = 6  # type: ignore[index]
        with pytest.raises(TypeError):
            config["loadBalancerNamespaceBundleMaxTopics"] = 6  # type: ignore[index]

    def test_typed_access(self) -> None:
        config = Settings()
        assert config.flag("loadBalancerEnabled") is True
        assert config.integer("loadBalancerNamespaceBundleMaxTopics") == 1000
        assert config.number("loadBalancerNamespaceBundleMaxTopics") == 1000.0
        assert config.text("defaultNamespaceBundleSplitAlgorithm") == "range_equally_divide"
        assert config.names("loadBalancerSheddingExcludedNamespaces") == ()
        for wrong in (config.integer, config.number, config.names, config.flag):
            with pytest.raises(TypeError):
                wrong("defaultNamespaceBundleSplitAlgorithm")
        with pytest.raises(TypeError):
            config.number("loadBalancerEnabled")
        with pytest.raises(KeyError):
            config["loadBalancerNothing"]


@pytest.mark.parametrize(
    ("name", "value", "remedy"),
    [
        ("loadBalancerBrokerThresholdShedderPercentage", "15%", "Use a whole number (percentage points)."),
        ("loadBalancerSheddingEnabled", "on", "Use true or false."),
        ("loadBalancerHistoryResourcePercentage", "0,9", "Use a plain number (fraction)."),
        ("loadBalancerLoadSheddingStrategy", 5, "Use text (class)."),
    ],
)
def test_a_value_of_another_type_is_told_in_words(name: str, value: object, remedy: str) -> None:
    """It said 'a value of type int', which tells an operator who wrote 15% nothing."""
    with pytest.raises(SettingError) as caught:
        REFERENCE.settings[name].parse(value)
    assert caught.value.remedy == remedy
