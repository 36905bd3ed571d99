#!/bin/bash
exec matchbox-window-manager
