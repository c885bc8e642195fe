"""gRPC from Python: PYTHONPATH=gen-python python3 docs/examples/python/call.py

Needs grpcio and protobuf (`pip install grpcio protobuf`, or Debian's python3-grpcio and python3-protobuf) and the code
that buf generates from proto/, as buf.gen.yaml beside this file says.
"""

import json
import os
import re
import sys

import grpc
from relay.v1 import relay_pb2, relay_pb2_grpc


def call(relay, url, method="GET", payload=None):
    """One call; the parsed JSON of the provider, or an error that says what to do."""
    description = relay_pb2.CallDescription(url=url, method=method)
    if payload is not None:
        description.payload.update(payload)
    request = relay_pb2.CallRequest(
        provider_name=os.environ.get("PROVIDER", "sandbox"),
        user_id=os.environ.get("USER_ID", "ada"),
        public_key=os.environ.get("PUBLIC_KEY", "demo-public-key-for-the-sandbox-only"),
        call=description,
        # The provider's own bytes: numbers beyond 2^53 stay what they are.
        response_mode=relay_pb2.RESPONSE_MODE_BODY,
    )
    private_key = os.environ.get("PRIVATE_KEY", "")
    metadata = [("authorization", f"Bearer {private_key}")] if private_key else []
    row = relay.Call(request, metadata=metadata, timeout=30).rows[0]
    if row.pinc_status == "success":
        return json.loads(row.body)
    raise RuntimeError(f"{row.error_type} ({row.status_code}): {row.inernal_error} [call {row.call_id}]")


def main():
    target = re.sub(r"^https?://", "", os.environ.get("RELAY_URL", "http://127.0.0.1:8080"))
    api = os.environ.get("API_URL", "http://127.0.0.1:8090")
    # grpc.secure_channel(target, grpc.ssl_channel_credentials()) where the relay speaks TLS.
    with grpc.insecure_channel(target) as channel:
        relay = relay_pb2_grpc.RelayServiceStub(channel)
        print(call(relay, f"{api}/me"))
        print(call(relay, f"{api}/chat.postMessage", "POST", {"channel": "#general", "text": "hi"}))
        try:
            call(relay, f"{api}/status/404")
        except RuntimeError as error:
            print(error)


if __name__ == "__main__":
    try:
        main()
    except grpc.RpcError as error:
        # Only what never became a call: no relay there, a message too large.
        sys.exit(f"{error.code().name}: {error.details()}")
