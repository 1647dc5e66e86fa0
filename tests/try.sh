# SPDX-License-Identifier: Apache-2.0
# For tests of the command, which set hone, failed=0, and perhaps words, those that every call begins with,
# and after, what is called after each.
try() { # wanted exit code, text that must be printed, then the command's words
    local code=$1 text=$2 rc
    shift 2
    out=$(${HONE_RUNNER:-} "$hone" ${words:-} "$@" 2>&1)
    rc=$?
    if [ $rc != "$code" ] || [[ $out != *"$text"* ]]; then
        echo "hone ${words:-} $*: exit $rc, wanted $code and '$text'. It printed:"
        echo "$out" | head -n 30
        failed=$((failed + 1))
    fi
    ${after:-true} "hone ${words:-} $*"
}
