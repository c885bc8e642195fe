#!/usr/bin/env bash
# The JSON route with curl: bash docs/examples/curl/call.sh
set -euo pipefail

relay=${RELAY_URL:-http://127.0.0.1:8080}
api=${API_URL:-http://127.0.0.1:8090}
provider=${PROVIDER:-sandbox}
keys="user_id=${USER_ID:-ada}&public_key=${PUBLIC_KEY:-demo-public-key-for-the-sandbox-only}"
# From a file of curl's own, so that no list of processes shows the key.
proof=()
if [ -n "${PRIVATE_KEY:-}" ]; then proof=(-H @<(printf 'authorization: Bearer %s\n' "$PRIVATE_KEY")); fi

echo "# A call, and the whole envelope"
curl -sS ${proof[@]+"${proof[@]}"} "$relay/oauth/method/$provider/call?$keys" \
  -d '{"url":"'"$api"'/me","method":"GET"}'

echo && echo "# A message, and the provider's answer alone"
curl -sS ${proof[@]+"${proof[@]}"} "$relay/oauth/method/$provider/call?$keys" \
  -d '{"url":"'"$api"'/chat.postMessage","method":"POST","payload":{"channel":"#general","text":"hi"},"headers":{"x-pinc-response-data-at":"rows.0.data"}}'

echo && echo "# A provider's error: HTTP status 200, pincStatus error"
curl -sS ${proof[@]+"${proof[@]}"} "$relay/oauth/method/$provider/call?$keys" \
  -d '{"url":"'"$api"'/status/404","method":"GET"}'

echo && echo "# A download as it comes, with the provider's own status and fields"
curl -sS --fail-with-body ${proof[@]+"${proof[@]}"} "$relay/oauth/method/$provider/stream?$keys" \
  -d '{"url":"'"$api"'/drip?bytes=12&ms=5","method":"GET"}'
echo
