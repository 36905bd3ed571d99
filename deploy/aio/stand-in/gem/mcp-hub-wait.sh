#!/bin/bash
# As in AIO, an empty MCP_HUB_WAIT_PORTS means the default ones, not none.
exec /opt/gem/await-ports.sh "${MCP_HUB_WAIT_PORTS:-$MCP_SERVER_BROWSER_PORT,$SANDBOX_SRV_PORT}" \
  /usr/bin/mcp-hub --port "${MCP_HUB_PORT:-8079}" --stateless --config /opt/gem/mcp-hub.json
