// Prints how many cl100k tokens standard input has. The rank table comes with js-tiktoken; nothing is downloaded.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const require = createRequire(`${process.argv[2]}/`);
const { Tiktoken } = require("js-tiktoken/lite");
const ranks = require("js-tiktoken/ranks/cl100k_base");
console.log(new Tiktoken(ranks.default ?? ranks).encode(readFileSync(0, "utf8")).length);
