#!/bin/sh
# Tells Levee of the attacks that FastNetMon finds: its notify script. Needs curl and nothing else that a small system
# lacks. README.md beside it says how to install it.
#
# Whatever an attacker can put into a packet may be in the details: nothing of it is ever evaluated or given to a program
# as an argument. The key is read from a file of mode 0600 and shows in no list of processes.
#
# FastNetMon calls it in one of two ways:
#   text   address direction packets-per-second action     details on standard input, but for "unban"
#   json   (no arguments that matter)                      the document on standard input
# It must read all of standard input: FastNetMon may fail otherwise.

set -u
umask 077
LC_ALL=C
export LC_ALL

conf=${LEVEE_NOTIFY_CONF:-/etc/levee/fastnetmon.conf}
# The service takes bodies of 1 MiB, and details of 200 000 characters.
most_json=1000000
most_text=190000
# Seconds before each further attempt.
pauses='1 2 4 8 15'

say() {
  if command -v logger >/dev/null 2>&1; then logger -t levee-notify -- "$1"; fi
  printf '%s\n' "levee-notify: $1" >&2
}

fail() {
  say "$1"
  exit 1
}

# The value of a line "name = value" of the configuration.
setting() {
  sed -n "s/^[[:space:]]*$1[[:space:]]*=[[:space:]]*//p" <"$conf" | sed -n '1s/[[:space:]]*$//p'
}

work=$(mktemp -d "${TMPDIR:-/tmp}/levee-notify.XXXXXX") || fail 'cannot make a temporary directory'
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

# An "unban" in text form has no details, and standard input may be anything.
if [ $# -ge 4 ] && [ "$4" = unban ]; then
  : >"$work/input"
else
  head -c "$most_json" >"$work/input"
  cat >/dev/null
fi

case $(ls -ldL -- "$conf" 2>/dev/null) in
  '') fail "cannot read $conf" ;;
  -r[w-][x-]------*) ;;
  *) fail "$conf holds a key: its mode must be 0600" ;;
esac
url=$(setting url)
key=$(setting key)
case $url in
  http://* | https://*) ;;
  *) fail "$conf: url must be the address of Levee, such as https://levee.example.net" ;;
esac
case $key in
  '' | *[!A-Za-z0-9_]*) fail "$conf: key must be an operator's API key" ;;
esac
url=${url%/}
url=${url%/v1}

if [ "$(head -c 1 "$work/input")" = '{' ]; then
  mv "$work/input" "$work/body"
else
  [ $# -ge 4 ] || fail 'neither a JSON document nor the four arguments of the text format'
  case $1 in
    '' | *[!0-9A-Fa-f.:]*) fail 'the first argument is no address' ;;
  esac
  case $2 in
    outgoing) exit 0 ;; # Not an attack on this address.
    '' | *[!a-z]*) direction=unknown ;;
    *) direction=$2 ;;
  esac
  case $4 in
    '' | *[!a-z_]*) fail 'the fourth argument is no action' ;;
  esac
  {
    printf '{"ip":"%s","direction":"%s","action":"%s"' "$1" "$direction" "$4"
    case $3 in
      '' | *[!0-9]* | ??????????????*) ;;
      # Without leading zeros, which JSON does not have.
      *) printf ',"pps":%s' "$(printf '%s\n' "$3" | sed 's/^0*\(.\)/\1/')" ;;
    esac
    printf ',"details":"'
    # Printable ASCII and line ends alone are left, and a JSON string is made of them.
    head -c "$most_text" "$work/input" | tr '\t' ' ' | tr -cd '\n -~' |
      sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' | awk '{ printf "%s\\n", $0 }'
    printf '"}'
  } >"$work/body"
fi

for pause in 0 $pauses; do
  sleep "$pause"
  status=$(
    printf 'header = "x-api-key: %s"\n' "$key" |
      curl --config - --silent --globoff --proto '=http,https' --connect-timeout 5 --max-time 15 \
        --header 'content-type: application/json' --data-binary "@$work/body" \
        --output "$work/answer" --write-out '%{http_code}' "$url/v1/operator/attack/fastnetmon"
  )
  case $status in
    200) exit 0 ;;
    000 | '' | 408 | 429 | 5??) ;; # May pass.
    *) fail "Levee answered $status: $(head -c 500 "$work/answer" 2>/dev/null | tr -cd ' -~')" ;;
  esac
done
fail "Levee could not be reached or did not answer (last status ${status:-000}); the notification is lost"
