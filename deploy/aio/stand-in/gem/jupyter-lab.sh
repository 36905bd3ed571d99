#!/bin/bash
exec /opt/python3.12/bin/jupyter-lab --port "$JUPYTER_LAB_PORT"
