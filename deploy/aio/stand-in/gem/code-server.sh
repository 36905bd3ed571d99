#!/bin/bash
exec /usr/bin/code-server --port "$CODE_SERVER_PORT"
