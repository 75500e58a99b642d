"""Every rule that not all releases have: a `Switch` stands beside its rule and has a line here."""

from planner.cluster.internal_namespaces import MONITORS_REPORTED, SLA_OF_CLUSTER, SYSTEM_STAYS
from planner.cluster.release_notes import ReleaseRules
from planner.cluster.topic_names import FOUR_PARTS
from planner.pulsar.load.top_bundles import IDLE_BUNDLES, ROUGH_ORDER
from planner.pulsar.load.usage import UNWEIGHTED
from planner.pulsar.placement.avg import BOUND_BY_NAME, PLANNED_DESTINATIONS, UNPAIRED, AvgPlacement
from planner.pulsar.placement.least_long_term_message_rate import LeastLongTermMessageRate
from planner.pulsar.shedding.avg import ABSENT, WHOLE_POINTS, AvgShedder
from planner.pulsar.shedding.overload import WAS_DEFAULT, WAS_DEFAULT_UNTIL, OverloadShedder
from planner.pulsar.shedding.registry import SHEDDERS
from planner.pulsar.shedding.threshold import ThresholdShedder
from planner.pulsar.shedding.transfer import ALONE, TransferShedder
from planner.pulsar.shedding.uniform import LARGER_FITS, ONE_PAIR, UniformLoadShedder
from planner.pulsar.throttling.async_token_bucket import OVERFLOWS

RELEASE_RULES = ReleaseRules(
    switches={
        LARGER_FITS: (UniformLoadShedder,),
        ONE_PAIR: (UniformLoadShedder,),
        UNWEIGHTED: (OverloadShedder, LeastLongTermMessageRate),
        WHOLE_POINTS: (AvgShedder,),
        ABSENT: (AvgShedder, AvgPlacement),
        BOUND_BY_NAME: (AvgPlacement,),
        PLANNED_DESTINATIONS: (AvgShedder, AvgPlacement),
        UNPAIRED: (AvgPlacement,),
        SLA_OF_CLUSTER: (),
        SYSTEM_STAYS: (OverloadShedder, ThresholdShedder, UniformLoadShedder),
        MONITORS_REPORTED: (TransferShedder,),
        ALONE: (TransferShedder,),
        IDLE_BUNDLES: (TransferShedder,),
        ROUGH_ORDER: (TransferShedder,),
        OVERFLOWS: (),
        FOUR_PARTS: (),
    },
    absent={one.name: one.profile.absent for one in SHEDDERS if one.profile.absent is not None},
    earlier={WAS_DEFAULT_UNTIL: WAS_DEFAULT},
)
