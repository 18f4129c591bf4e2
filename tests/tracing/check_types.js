// check_types.js FILE: compiles each line of FILE, a request to a collector of traces, as an IExportTraceServiceRequest of
// @opentelemetry/otlp-transformer. Prints what the compiler says, and exits with 1 if it says anything.
const fs = require('fs');
const path = require('path');
const ts = require('typescript');

const types = path.join(path.dirname(require.resolve('@opentelemetry/otlp-transformer')), 'trace/internal-types');
const lines = fs.readFileSync(process.argv[2], 'utf8').trim().split('\n');
const source = `import { IExportTraceServiceRequest } from ${JSON.stringify(types)};\n` +
  lines.map((line, i) => `export const request${i}: IExportTraceServiceRequest = ${line};\n`).join('');
const file = path.join(path.dirname(path.resolve(process.argv[2])), 'requests.ts');
fs.writeFileSync(file, source);
const program = ts.createProgram([file], { strict: true, noEmit: true, skipLibCheck: true, types: [], target: ts.ScriptTarget.ES2022,
  module: ts.ModuleKind.CommonJS, moduleResolution: ts.ModuleResolutionKind.Node10 });
const problems = ts.getPreEmitDiagnostics(program);
for (const problem of problems) console.log(ts.flattenDiagnosticMessageText(problem.messageText, '\n'));
process.exit(problems.length > 0 ? 1 : 0);
