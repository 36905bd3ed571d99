// Reads a JSON array of arrays of texts; prints a JSON array with the cl100k tokens of each inner array. Downloads nothing.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const require = createRequire(`${process.argv[2]}/`);
const { Tiktoken } = require("js-tiktoken/lite");
const ranks = require("js-tiktoken/ranks/cl100k_base");
const encoder = new Tiktoken(ranks.default ?? ranks);
const groups = JSON.parse(readFileSync(0, "utf8"));
console.log(JSON.stringify(groups.map((texts) => texts.reduce((sum, text) => sum + encoder.encode(text).length, 0))));
