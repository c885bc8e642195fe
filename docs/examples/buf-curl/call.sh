#!/usr/bin/env bash
# Connect, gRPC and gRPC-Web with buf curl: bash docs/examples/buf-curl/call.sh, in the folder of the checkout
set -euo pipefail

relay=${RELAY_URL:-http://127.0.0.1:8080}
call='{
  "provider_name": "'${PROVIDER:-sandbox}'",
  "user_id": "'${USER_ID:-ada}'",
  "public_key": "'${PUBLIC_KEY:-demo-public-key-for-the-sandbox-only}'",
  "call": {"url": "'${API_URL:-http://127.0.0.1:8090}'/me", "method": "GET"}
}'

echo "# gRPC; the schema comes from the relay by reflection"
npx buf curl --protocol grpc --http2-prior-knowledge "$relay/relay.v1.RelayService/Call" -d "$call"

echo "# Connect and gRPC-Web over HTTP/1.1; the schema comes from proto/"
npx buf curl --protocol connect --schema proto "$relay/relay.v1.RelayService/Call" -d "$call"
npx buf curl --protocol grpcweb --schema proto "$relay/relay.v1.RelayService/Call" -d "$call"

echo "# What the relay serves, and whether it is ready"
npx buf curl --http2-prior-knowledge "$relay" --list-methods
npx buf curl --protocol grpc --http2-prior-knowledge "$relay/grpc.health.v1.Health/Check" -d '{}'
