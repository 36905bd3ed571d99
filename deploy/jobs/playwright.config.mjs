// The configuration of every Playwright job in Node: the project's own, overridden by the policy's switches.
// Its paths are relative to the project and not to this file, so they are resolved here.
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const project = process.env.BROWSER_SHELL_PROJECT;
const NAMES = ['ts', 'js', 'mts', 'mjs', 'cts', 'cjs'].map((ending) => resolve(project, `playwright.config.${ending}`));
const ENDINGS = ['', '.ts', '.js', '.mts', '.mjs', '.cts', '.cjs'];
const PATHS = ['testDir', 'snapshotDir', 'tsconfig'];
const MODULES = ['globalSetup', 'globalTeardown'];
const kept = {
  screenshot: process.env.BROWSER_SHELL_SCREENSHOTS,
  video: process.env.BROWSER_SHELL_VIDEOS,
  trace: process.env.BROWSER_SHELL_TRACES,
};

const found = NAMES.find((name) => existsSync(name));
const own = found ? unwrapped(await load(found)) : {};

export default {
  ...placed(own),
  testDir: resolve(project, own.testDir ?? '.'),
  projects: own.projects?.map((part) => placed(part)),
  webServer: Array.isArray(own.webServer) ? own.webServer.map(serverIn) : own.webServer && serverIn(own.webServer),
};

// Playwright loads TypeScript through require hooks for CommonJS projects and through import hooks for ES modules.
async function load(file) {
  try {
    return createRequire(import.meta.url)(file);
  } catch (error) {
    if (error.code !== 'ERR_REQUIRE_ESM' && error.code !== 'ERR_REQUIRE_ASYNC_MODULE') throw error;
    return import(pathToFileURL(file).href);
  }
}

function unwrapped(module) {
  const inner = module.default ?? module;
  return inner.default ?? inner;
}

function placed(part) {
  const result = { ...part, use: { ...part.use, ...kept } };
  for (const name of PATHS) {
    if (typeof result[name] === 'string') result[name] = resolve(project, result[name]);
  }
  for (const name of MODULES) {
    if (result[name]) result[name] = [result[name]].flat().map(module);
  }
  delete result.outputDir;
  return result;
}

// A file of the project, or a package name.
function module(name) {
  const place = resolve(project, name);
  return ENDINGS.some((ending) => existsSync(place + ending)) ? place : name;
}

function serverIn(server) {
  return { ...server, cwd: resolve(project, server.cwd ?? '.') };
}
