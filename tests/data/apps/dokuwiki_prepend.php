<?php
// Configuration and data of one run, instead of those of the Debian package.
define('DOKU_CONF', getenv('WIKI_FOLDER') . '/conf/');
