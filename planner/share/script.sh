#!/bin/sh
@@REMARKS@@
set -eu
digest=@@DIGEST@@
cluster=@@CLUSTER@@
captured_s=@@CAPTURED@@ ; limit_percent=@@LIMIT@@ ; splits=@@SPLITS@@ ; moves=@@MOVES@@ ; steps=@@STEPS@@
dry_run='' ; yes='' ; with_settings='' ; leave_off='' ; take_over='' ; ignore_usage='' ; at_once='' ; names=''
divided=0 ; moved=0 ; skipped=0 ; at=0 ; looked=0 ; here=0 ; odd='' ; begun='' ; unseen='' ; held='' ; kept='' ; changed='' ; turned_off='' ; scheme='' ; unusual=''
tab=$(printf '\t')
say() { printf '%s\n' "$*"; }
usage() {
    say 'Usage: sh SCRIPT [OPTION]...'
    say '  --dry-run             print every step and do nothing'
    say '  --yes                 answer the first question: continue, if the cluster is as expected'
    say '  --broker NAME=ID      the real id (host:port) of a broker that the plan adds; otherwise the script asks for it'
    say '  --with-settings       also make the setting changes that the script would ask about'
    say '  --leave-shedding-off  leave automatic shedding off at the end, if every step was carried out'
    say '  --restore-at-once     restore shedding and splits right after the last step, without the wait before'
    say '  --ignore-usage        continue although a broker is above the limit after a batch'
    say '  --take-over           continue although another script holds shedding and splits; use it if that script was killed'
    say @@STATUSES@@
    say 'Run the script again to continue. Unless it ends with 0, it restores all settings.'
}
# stop STATUS TEXT: end the script; `finish` restores settings and says how far it came.
stop() { say "$2" ; exit "$1" ; }
# admin WORDS...: ask pulsar-admin something; this never changes the cluster.
admin() { @@ADMIN@@ "$@" </dev/null ; }
# call COMMAND...: show a command and run it.
call() {
    printf '+' ; printf ' %s' "$@" ; printf '\n'
    [ -n "$dry_run" ] || "$@" </dev/null
}
# run COMMAND...: show a command and run it; stop if it fails.
run() { call "$@" || stop 1 "That command failed with status $?." ; }
# try COMMAND...: run a command, up to three times.
try() {
    for pause in 5 5 ''; do
        if call "$@"; then return 0 ; fi
        [ -z "$pause" ] || sleep "$pause"
    done
    return 1
}
# once STEP COMMAND...: carry out a step that no earlier run has carried out.
once() {
    number=$1 ; at=$1 ; shift
    if [ -z "$dry_run" ] && [ -e "$done_file" ] && grep -qx "$number" "$done_file"; then
        printf 'Done before:' ; printf ' %s' "$@" ; printf '\n'
        return
    fi
    open=''
    "$@"
    [ -n "$dry_run$open" ] || printf '%s\n' "$number" >>"$done_file"
}
# by_hand TEXT [COMMAND]: wait until a person has done a step.
by_hand() {
    say ">> $1"
    [ $# -lt 2 ] || say "    $2"
    [ -z "$dry_run" ] || return 0
    [ -z "$held" ] || say '   Shedding and automatic splits stay off while this waits.'
    while :; do
        printf 'Type yes when this is done, or stop to end the script: '
        answer='' ; read -r answer || answer=stop
        case $answer in
        y | yes) return 0 ;;
        n | no | stop) stop 3 'Stopped.' ;;
        esac
    done
}
# before_stop BROKER: say what a broker still owns before a person stops it.
before_stop() {
    [ -z "$dry_run" ] || return 0
    if admin brokers namespaces "$cluster" --url "$1" >"$work/left"; then
        # Its heartbeat bundles leave with it.
        bundles "$work/left" | grep -vF -e "/$1/" >"$work/still" || :
        count=$(($(wc -l <"$work/still")))
        if [ "$count" -eq 0 ]; then
            say "$1 owns no bundles any more."
        else
            say "$1 still owns $count bundles. When it stops, Pulsar places them on other brokers:"
            sed -n '1,20s/^/    /p' "$work/still"
            [ "$count" -le 20 ] || say '    ...'
        fi
    else
        say "Cannot see what $1 still owns."
    fi
    say "Stop $1 before you answer: once this script ends, the load balancer moves bundles back to it within a cycle."
}
# ask_id NAME: put the real id of a broker that the plan adds into $broker.
ask_id() {
    broker='' ; IFS_before=$IFS
    IFS='
'
    for pair in $names; do
        case $pair in "$1="*) broker=${pair#"$1="} ;; esac
    done
    IFS=$IFS_before
    if [ -n "$dry_run" ] && [ -z "$broker" ]; then broker=$1 ; fi
    while [ -z "$dry_run" ] && ! is_id "$broker"; do
        [ -z "$broker" ] || say "An id ends with a port; $broker does not."
        printf 'Real id (host:port) of %s: ' "$1"
        read -r broker || stop 3 'No id was entered.'
    done
}
is_id() { case ${1##*:} in "$1" | '' | *[!0-9]*) return 1 ;; esac }
# bundles FILE: print the bundles in an answer, one in a line (pulsar-admin 4.0.8) or keys of JSON.
bundles() { tr '{,' '\n' <"$1" | sed -n 's/^[[:space:]]*"\{0,1\}\([^"[:space:]]*_0x[0-9a-f]*\).*$/\1/p' ; }
# look_up BROKER: read which bundles a broker owns, once for each batch.
look_up() {
    if grep -qxF -e "$1" "$work/asked"; then return 0 ; fi
    printf '%s\n' "$1" >>"$work/asked"
    if admin brokers namespaces "$cluster" --url "$1" >"$work/answer"; then
        bundles "$work/answer" | while read -r bundle; do printf '\t%s\t%s\n' "$1" "$bundle" ; done >>"$work/owned"
    else
        say "Cannot see what $1 owns."
        printf '%s\n' "$1" >>"$work/unseen"
    fi
}
look_up_again() { : >"$work/asked" ; : >"$work/owned" ; : >"$work/unseen" ; }
answered() { ! grep -qxF -e "$1" "$work/unseen" ; }
# owns BROKER BUNDLE: whether a broker owns a bundle.
owns() { look_up "$1" && grep -qxF -e "$tab$1$tab$2" "$work/owned" ; }
was_moved() { grep -qsxF -e "moved $1" "$done_file" ; }
# check_cluster: see whether this is the cluster of the plan; it only reads.
check_cluster() {
    if [ -n "$dry_run" ]; then
        say "This run shows the steps for the cluster $cluster and checks nothing."
        return 0
    fi
    say 'Checking that this is the cluster of the plan. Nothing is changed yet.'
    admin brokers get-runtime-config >"$work/runtime" || stop 1 'Cannot read the configuration of a broker. Nothing was changed.'
    found=$(value_in "$work/runtime" clusterName) || found=''
    [ -z "$found" ] || [ "$found" = "$cluster" ] || stop 7 "This is the cluster $found. The plan is for $cluster. Nothing was changed."
    expect Cluster "$cluster" "$found"
}
# expect WHAT PLANNED FOUND: compare what the cluster says with what the plan expects.
expect() {
    if [ "$2" = "$3" ]; then
        say "  $1: $3, as expected"
    else
        say "  $1: ${3:-unknown}, but the plan expects $2" ; odd=1
    fi
}
expect_release() {
    [ -z "$dry_run" ] || return 0
    found=$(admin brokers version) || stop 1 'Cannot read the release of a broker. Nothing was changed.'
    expect Release "$1" "$(say "$found" | tr -d '" ')"
}
# expect_class WHAT SETTING NAME: compare a class of the configuration, without its package.
expect_class() {
    [ -z "$dry_run" ] || return 0
    found=$(value_in "$work/runtime" "$2") || found=''
    expect "$1" "$3" "${found##*.}"
}
# begins BROKER BUNDLE: whether a broker owns a bundle, or the part of it that begins it.
begins() {
    of=$1 whole=$2 awk -F '\t' '
        BEGIN { whole = ENVIRON["whole"] ; low = substr(whole, 1, length(whole) - 10) ; high = substr(whole, length(low) + 1) }
        $2 "" == ENVIRON["of"] "" && substr($3, 1, length($3) - 10) == low && substr($3, length($3) - 9) <= high { found = 1 }
        END { exit !found }' "$work/owned"
}
# expect_at BUNDLE BROKER...: look whether a bundle of the plan, or its first child, is where it should be.
expect_at() {
    [ -z "$dry_run" ] || return 0
    looked=$((looked + 1)) ; bundle=$1 ; shift
    for broker; do
        if look_up "$broker" && begins "$broker" "$bundle"; then
            say "  $bundle: on $broker, as expected" ; here=$((here + 1))
            return 0
        fi
    done
    if was_moved "$bundle"; then
        say "  $bundle: moved by an earlier run" ; here=$((here + 1))
    else
        say "  $bundle: not on $1"
    fi
}
# age SECONDS: say how long ago something was.
age() {
    if [ "$1" -lt 0 ]; then say 'in the future by the clock of this machine'
    elif [ "$1" -lt 7200 ]; then say "$(($1 / 60)) min ago"
    elif [ "$1" -lt 172800 ]; then say "$(($1 / 3600)) h ago"
    else say "$(($1 / 86400)) days ago" ; fi
}
# confirm [TIME]: ask whether to begin; TIME is when the cluster was captured.
confirm() {
    [ -z "$dry_run" ] || return 0
    [ ! -s "$work/unseen" ] || [ "$here" -gt 0 ] || stop 1 'No broker says what it owns. Nothing was changed.'
    [ "$looked" -eq 0 ] || [ "$here" -gt 0 ] || stop 7 'None of these bundles is where the plan expects it: this is another cluster, or the capture is too old. Nothing was changed.'
    what="Cluster $cluster"
    [ $# -eq 0 ] || what="$what, captured $1, $(age "$(($(date -u +%s) - captured_s))")"
    if [ -n "$yes" ]; then
        [ -z "$odd" ] || stop 7 'Not everything is as expected, and --yes decides only if it is. Nothing was changed. To continue, run the script in a terminal.'
        say "$what: continuing."
    elif [ ! -t 0 ]; then
        stop 3 "$what. Nothing was changed. Run the script in a terminal, or with --yes."
    else
        printf '%s: continue? [y/N] ' "$what"
        answer='' ; read -r answer || :
        case $answer in y | Y | yes) ;; *) stop 3 'Stopped. Nothing was changed.' ;; esac
    fi
    begun=1
}
# divide STEP CUTS NAMESPACE BUNDLE BROKER COMMAND...: split a bundle that BROKER owns (no broker, where that is ''),
# unless it is split already.
divide() {
    at=$1 ; cuts=$2 ; space=$3 ; bundle=$4 ; broker=$5
    shift 5
    if [ -n "$dry_run" ]; then
        run "$@"
    elif [ -n "$broker" ] && owns "$broker" "$bundle"; then
        cut_up "$@"
    elif boundaries && is_cut; then
        say "Already split: $bundle, at $cuts." ; divided=$((divided + 1))
    elif [ -z "$broker" ] && { [ ! -s "$work/boundaries" ] || is_whole; }; then
        cut_up "$@"
    elif [ -s "$work/boundaries" ] && ! is_whole; then
        say "Skipped: $bundle does not exist any more. It was split elsewhere, or $space was created again."
        skipped=$((skipped + 1))
    else
        skip "$bundle" "$broker"
    fi
}
# cut_up COMMAND...: split $bundle, and see that it is split.
cut_up() {
    call "$@" || {
        failed=$?
        if boundaries && is_cut; then say "$bundle is split all the same." ; divided=$((divided + 1)) ; fi
        stop 1 "That command failed with status $failed."
    }
    look_up_again # the broker owns the children now
    has_effect
    divided=$((divided + 1))
}
# boundaries: read the boundaries of $space, one in a line.
boundaries() {
    : >"$work/boundaries"
    admin namespaces bundles "$space" >"$work/answer" 2>"$work/refused" || return 1
    tr -c '0-9a-fx' '[\n*]' <"$work/answer" | grep '^0x[0-9a-f]\{8\}$' >"$work/boundaries"
}
# is_cut: whether the boundaries have every cut of $cuts.
is_cut() {
    for cut in $cuts; do grep -qxF -e "$cut" "$work/boundaries" || return 1 ; done
}
# is_whole: whether the boundaries still make $bundle.
is_whole() {
    range=${bundle##*/}
    [ "$(sed -n "/^${range%_*}\$/{n;p;}" "$work/boundaries")" = "${range#*_}" ]
}
# has_effect: wait until the boundaries have the cuts; brokers may accept a split and do nothing.
has_effect() {
    for pause in 5 5 5 5 ''; do
        boundaries || { say "Cannot see the bundles of $space, so this split is not checked." ; return 0 ; }
        if is_cut; then return 0 ; fi
        [ -z "$pause" ] || sleep "$pause"
    done
    stop 8 "Pulsar accepted that command, but $bundle is not split: $space has no boundary at $cuts."
}
# move STEP BUNDLE FROM TO CLIENTS: unload a bundle from one broker to another; CLIENTS are disconnected.
move() {
    at=$1
    if [ -n "$dry_run" ] || owns "$3" "$2"; then
        run @@ADMIN@@ namespaces unload "${2%/*}" --bundle "${2##*/}" --destinationBroker "$4"
        [ -n "$dry_run" ] || printf 'moved %s\n' "$2" >>"$done_file"
        printf '%s\t%s\t%s\t%s\n' "$2" "$3" "$4" "$5" >>"$work/sent"
        moved=$((moved + 1))
    elif owns "$4" "$2"; then
        say "Already there: $2 is on $4." ; moved=$((moved + 1))
    elif [ "$5" -eq 0 ] && was_moved "$2"; then
        say "Unloaded before: $2 has no clients, and no owner until its next lookup." ; moved=$((moved + 1))
    else
        skip "$2" "$3"
    fi
}
# skip BUNDLE BROKER: leave out a bundle that the broker does not own.
skip() {
    if answered "$2"; then
        say "Skipped: $1 is not on $2."
    else
        say "Skipped: $1, as $2 did not answer." ; unseen=1
    fi
    open=1 ; skipped=$((skipped + 1))
}
# batch TEXT: begin a batch.
batch() { look_up_again ; : >"$work/sent" ; say "$1" ; }
# missing: list the bundles of a batch that have not arrived; one without clients has no owner until its next lookup.
missing() {
    look_up_again
    while IFS=$tab read -r bundle from to clients; do
        if owns "$to" "$bundle"; then continue ; fi
        if [ "$clients" -eq 0 ] && ! owns "$from" "$bundle" && answered "$from"; then continue ; fi
        if owns "$from" "$bundle"; then say "  $bundle is still on $from." ; else say "  $bundle is not on $to." ; fi
    done <"$work/sent"
}
# check_batch SECONDS: wait until the bundles of a batch have arrived, pause, then look at the usage of their brokers.
check_batch() {
    if [ -n "$dry_run" ]; then run sleep "$1" ; return 0 ; fi
    [ -s "$work/sent" ] || return 0
    waited_s=0 # a Pulsar client asks for its topic again after a minute at most, and loading takes its time
    while missing >"$work/missing" ; [ -s "$work/missing" ] && [ "$waited_s" -lt 120 ]; do
        sleep 5
        waited_s=$((waited_s + 5))
        [ $((waited_s % 30)) -ne 0 ] || say "  waited ${waited_s} s, still to arrive: $(grep -c . "$work/missing")"
    done
    if [ -s "$work/missing" ]; then
        cat "$work/missing"
        stop 8 'Not every bundle of this batch has arrived.'
    fi
    say 'Every bundle of this batch has arrived.'
    [ "$1" -eq 0 ] || run sleep "$1"
    cut -f 3 "$work/sent" | sort -u >"$work/receivers"
    over=''
    while read -r to; do check_usage "$to" ; done <"$work/receivers"
    [ -z "$over" ] || [ -n "$ignore_usage" ] || stop 8 "A broker is above the limit of $limit_percent %. To continue all the same, use --ignore-usage."
}
# settle SECONDS TEXT: keep shedding and splits on hold until brokers have reported what they serve now.
settle() {
    if [ -n "$leave_off$at_once" ] || { [ -z "$dry_run" ] && [ "$moved" -eq 0 ]; }; then return 0 ; fi
    say "$2"
    [ -n "$dry_run" ] || say '  Ctrl-C ends the wait and restores both now.'
    run sleep "$1"
}
# find_scheme: see how brokers are asked. No token goes to a plain port where pulsar-admin itself uses TLS.
find_scheme() {
    scheme=@@SCHEME@@
    for conf in "${PULSAR_CLIENT_CONF:-}" "${PULSAR_HOME:-}/conf/client.conf" "$(dirname -- "$(command -v @@PROGRAM@@)")/../conf/client.conf"; do
        if [ -f "$conf" ] && grep -q '^[[:space:]]*webServiceUrl[[:space:]]*[=:]\{0,1\}[[:space:]]*https:' "$conf"; then scheme=https ; fi
    done
}
# find_unusual: see whether the leader has TLS alone; then an unusual port is taken for one with TLS.
find_unusual() {
    unusual=$scheme
    if [ "$scheme" = http ] && admin brokers leader-broker 2>"$work/refused" | grep -q '"https:'; then unusual=https ; fi
}
# check_usage BROKER: say how much a broker is used, from its own metrics.
check_usage() {
    [ -n "$scheme" ] || find_scheme
    case $1 in
    @@TLS@@) web="https://$1" ;;
    *:80 | *:8080) web="$scheme://$1" ;;
    *) [ -n "$unusual" ] || find_unusual ; web="$unusual://$1" ;;
    esac
    if @@ADMIN@@ --admin-url "$web" broker-stats monitoring-metrics >"$work/metrics" 2>"$work/refused" </dev/null && used=$(used_percent "$work/metrics"); then
        say "  $1: $used % used"
        [ "$used" -le "$limit_percent" ] || over=1
    else
        say "  $1: its usage cannot be read, so only arrival was checked."
    fi
}
# used_percent FILE: print the highest usage in metrics of a broker, with the weights of the load manager.
used_percent() {
    tr '{},' '[\n*]' <"$1" | awk -F '"' -v weights=@@WEIGHTS@@ '
        BEGIN { split(weights, pairs, " "); for (i in pairs) { split(pairs[i], pair, "="); weight[pair[1]] = pair[2] } }
        $2 in weight { seen = 1 ; sub(/^[ :]*/, "", $3) ; if ($3 * weight[$2] > most) most = $3 * weight[$2] }
        END { if (!seen) exit 1; printf "%d\n", most + 0.5 }'
}
# value_in FILE NAME: print the value of a setting; fail where it has none. A line is NAME, blanks, VALUE, or JSON.
value_in() {
    line="s/^[[:space:]]*$2[[:space:]]\{1,\}/=/p"
    json="s/^.*\"$2\"[[:space:]]*:[[:space:]]*\"\([^\"]*\)\".*\$/=\1/p"
    found=$(sed -n -e "$line" -e "$json" "$1" | sed -n 1p)
    case $found in
    =*) printf '%s\n' "${found#=}" ;;
    *) return 1 ;;
    esac
}
# look_at_settings: read the dynamic configuration before anything is changed.
look_at_settings() {
    [ -z "$dry_run" ] || return 0
    admin brokers get-all-dynamic-config >"$work/dynamic" || stop 1 'Cannot read the dynamic configuration. Nothing was changed.'
    if [ -s "$before" ]; then # an earlier run was cut short; what was changed again since is not this script's any more
        cp "$before" "$work/noted"
        while IFS=$tab read -r name _ given value; do
            now=$(value_in "$work/dynamic" "$name") || now='-'
            case $now in "$given" | "$value" | *".held-by-$digest."*) ;; *) forget "$name" ;; esac
        done <"$work/noted"
    fi
    for name in @@SWITCHES@@; do
        now=$(value_in "$work/dynamic" "$name") || now=''
        case $now in
        *".held-by-$digest."*) say "An earlier run of this script was interrupted and left $name off." ;;
        *.held-by-*)
            say "Another script holds $name: $now."
            if [ -z "$take_over" ]; then
                say 'Nothing was changed. Wait until that script has ended. If it was killed, run this one with'
                say '--take-over: it continues, and at the end restores the settings from before the other script.'
                begun=''
                exit 5
            fi
            ;;
        esac
    done
}
# noted NAME: put what a setting was before into $kind (set, unset) and $value; fail where nothing is noted.
noted() {
    line=$(grep -s "^$1$tab" "$before") || return 1
    line=${line#*"$tab"} ; kind=${line%%"$tab"*}
    line=${line#*"$tab"} ; value=${line#*"$tab"}
}
forget() {
    grep -v "^$1$tab" "$before" >"$work/before" || :
    cat "$work/before" >"$before"
}
# note NAME VALUE CAPTURED: note what a setting is, in a file that outlives this script, before it gets a value.
note() {
    [ -z "$dry_run" ] || return 0
    changed=1
    if noted "$1"; then return 0 ; fi
    now=$(value_in "$work/dynamic" "$1") || now=''
    case $now in
    '') kind='unset' ; value=$(value_in "$work/runtime" "$1") || value=$3 ;;
    *.held-by-*) value=${now##*.was-} ; kind=${value%%-*} ; value=${value#*-} ;;
    *) kind='set' ; value=$now ;;
    esac
    printf '%s\t%s\t%s\t%s\n' "$1" "$kind" "${2:--}" "$value" >>"$before"
}
is_on() { case $1 in [Tt][Rr][Uu][Ee]) return 0 ;; *) return 1 ;; esac }
# hold NAME CAPTURED: turn a switch off while this script runs; its value says who holds it, and what it was.
hold() {
    note "$1" held "$2"
    held="$held $1"
    mark=false
    if [ -z "$dry_run" ]; then
        noted "$1"
        was=false
        if is_on "$value"; then was=true ; fi
        mark="false.held-by-$digest.since-$(date -u +%Y%m%dT%H%M%SZ).was-$kind-$was"
    fi
    run @@ADMIN@@ brokers update-dynamic-config --config "$1" --value "$mark"
}
# settings_next: settings follow what was moved, so none is changed where something was skipped.
settings_next() {
    [ "$skipped" -eq 0 ] || { say 'Settings are not changed, as bundles were skipped.' ; exit 0 ; }
}
# change NAME VALUE CAPTURED COMMAND...: change a setting of all brokers; an empty value deletes its override.
change() {
    note "$1" "$2" "$3"
    kept="$kept $1"
    if [ "$1" = @@SHEDDING@@ ] && ! is_on "$2"; then turned_off=1 ; fi
    shift 3
    run "$@"
}
# offer NAME VALUE CAPTURED COMMAND...: the same, if a person wants it.
offer() {
    if [ -z "$dry_run$with_settings" ]; then
        say ">> Unless $1 is $2 (captured: $3), Pulsar undoes part of this plan."
        printf 'Type yes to set it; anything else leaves it as it is: '
        answer='' ; read -r answer || :
        case $answer in
        y | yes) ;;
        *) say "$1 stays unchanged." ; return 0 ;;
        esac
    fi
    change "$@"
}
# undo NAME VALUE KIND CAPTURED: take back a value that the plan set; KIND says whether the setting had an override.
undo() {
    if [ -z "$dry_run" ]; then
        now=$(value_in "$work/dynamic" "$1") || now=''
        [ "$now" = "$2" ] || { say "$1 is not $2: it stays unchanged." ; return 0 ; }
    fi
    note "$1" "$2" "$2"
    kept="$kept $1"
    [ -z "$4" ] || run @@ADMIN@@ brokers update-dynamic-config --config "$1" --value "$4"
    [ "$3" != set ] || return 0
    run sleep 5
    run @@ADMIN@@ brokers delete-dynamic-config --config "$1"
    if [ "$3" = unknown ] && [ -z "$dry_run" ]; then
        admin brokers get-runtime-config >"$work/runtime" || : >"$work/runtime"
        now=$(value_in "$work/runtime" "$1") || now=''
        case $now in
        '' | "$4") ;;
        *) run @@ADMIN@@ brokers update-dynamic-config --config "$1" --value "$4" ;;
        esac
    fi
}
# offer_on NAME WHAT: ask whether to turn on what was off before.
offer_on() {
    [ -z "$dry_run" ] || return 0
    noted "$1" || return 0
    case " $kept " in *" $1 "*) return 0 ;; esac
    if is_on "$value"; then return 0 ; fi
    say ">> $2 was off before this script ($1=false)."
    printf 'Type on to turn it on; anything else leaves it off: '
    answer='' ; read -r answer || :
    if [ "$answer" = on ]; then
        kept="$kept $1"
        run @@ADMIN@@ brokers update-dynamic-config --config "$1" --value true
    fi
}
# put_back: give every setting that is noted its value from before, or none where it had none.
put_back() {
    failed='' ; unset=''
    # Older brokers keep the last value when an override is deleted, so each gets its value first (3.0.0 to 3.2.0).
    while IFS=$tab read -r name kind _ value; do
        [ -z "$value" ] || try @@ADMIN@@ brokers update-dynamic-config --config "$name" --value "$value" || failed=1
        [ "$kind" = set ] || unset=1
    done <"$before"
    [ -z "$unset" ] || call sleep 5 || :
    while IFS=$tab read -r name kind _ value; do
        [ "$kind" = set ] || try @@ADMIN@@ brokers delete-dynamic-config --config "$name" || failed=1
    done <"$before"
    [ -z "$failed" ] || return 1
    rm -f "$before"
}
by_command() {
    say 'RESTORING SETTINGS FAILED. Run these commands yourself, one after the other:'
    while IFS=$tab read -r name kind _ value; do
        [ -z "$value" ] || say "@@ADMIN@@ brokers update-dynamic-config --config $name --value $value"
        [ "$kind" = set ] || say "@@ADMIN@@ brokers delete-dynamic-config --config $name"
    done <"$before"
}
finish() {
    status=$?
    trap - EXIT ; trap '' HUP INT TERM
    off=''
    if [ "$status" -eq 0 ] && [ "$skipped" -gt 0 ]; then
        if [ -n "$unseen" ]; then
            say "Skipped: $skipped. Some brokers did not answer; run this script again when they do."
        else
            say "Skipped: $skipped. Those bundles have moved or been split since the capture; capture the cluster again, and plan from that capture."
        fi
        [ -z "$leave_off" ] || say 'Shedding is not left off, as bundles were skipped.'
        status=4
    fi
    if [ "$status" -eq 0 ] && [ -n "$changed" ]; then
        if [ -n "$leave_off" ] && noted @@SHEDDING@@; then
            if try @@ADMIN@@ brokers update-dynamic-config --config @@SHEDDING@@ --value false; then
                kept="$kept @@SHEDDING@@" ; turned_off=1
            fi
        fi
        for name in $kept; do forget "$name" ; done
        off=$turned_off
    fi
    if [ -n "$changed" ] && noted @@SHEDDING@@ && ! is_on "$value"; then off=1 ; fi
    if [ -z "$begun" ] && [ -s "$before" ]; then
        say 'An earlier run of this script was interrupted, and its settings are not restored yet. Run the script again.'
    fi
    [ -z "$dry_run" ] || [ -z "$held" ] || say 'Shedding and automatic splits go back to what they were.'
    if [ -n "$changed" ] && [ -s "$before" ]; then
        if [ "$status" -eq 0 ]; then
            say 'Restoring shedding and automatic splits.'
        else
            say 'Restoring settings.'
        fi
        put_back || { status=6 ; by_command ; }
    fi
    [ -s "$before" ] || rm -f "$before"
    [ "$status" -ne 0 ] || [ -n "$dry_run" ] || rm -f "$done_file"
    rm -rf "$work"
    if [ -n "$begun" ] && [ -z "$dry_run" ]; then
        state="$moved of $moves bundles are moved"
        [ "$splits" -eq 0 ] || state="$divided of $splits splits are made, $state"
        [ "$moves$splits" != 00 ] || state=
        if [ "$status" -eq 0 ]; then
            say "Done${state:+: $state}."
            [ -z "$kept" ] || say "These settings are changed:$kept."
            [ -z "$changed" ] || say "All${kept:+ other} settings are as before."
        else
            say "State: ${state:+$state, $skipped skipped; }the last step was $at of $steps."
        fi
        case $status in
        0) ;;
        4) say 'All settings are as before.' ;;
        6) ;;
        *) say 'All settings are as before. To continue, run this script again: it leaves out what is done.' ;;
        esac
    fi
    [ -z "$off" ] || say @@OFF@@
    exit "$status"
}
while [ $# -gt 0 ]; do
    case $1 in
    --dry-run) dry_run=1 ;;
    --yes) yes=1 ;;
    --ignore-usage) ignore_usage=1 ;;
    --with-settings) with_settings=1 ;;
    --leave-shedding-off) leave_off=1 ;;
    --take-over) take_over=1 ;;
    --restore-at-once) at_once=1 ;;
    --broker)
        [ $# -gt 1 ] || { usage ; exit 2 ; }
        shift
        names="$names$1
"
        ;;
    -h | --help) usage ; exit 0 ;;
    *) usage ; exit 2 ;;
    esac
    shift
done
grep -qs "^digest=$digest$" "$0" || {
    say 'Save this script as a file and run the file: the script reads your answers.' ; exit 2
}
done_file="$0.$digest.done" ; before="$0.$digest.before"
work=$(mktemp -d)
look_up_again
trap finish EXIT
trap 'exit 129' HUP ; trap 'exit 130' INT ; trap 'exit 143' TERM
@@BODY@@
