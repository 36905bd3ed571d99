#!/bin/bash
exec tinyproxy -d -c /etc/tinyproxy.conf
