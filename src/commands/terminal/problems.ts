import { ConfigError, formatProblem, formatSource, type Problem } from '../../config/problem.ts';
import { failureText } from '../failure.ts';
import { coloured, type Terminal } from './colour.ts';

/** The message of a failed command, one line for each problem of the configuration. */
export function errorText(error: unknown, stream: Terminal): string {
  if (!(error instanceof ConfigError)) return coloured(stream, 'red', failureText(error));
  return error.problems.map((problem) => problemText(problem, stream, 'red', '')).join('\n');
}

/** `limits.yaml:3: warning: accounts.acct_2: expired at …` */
export function warningText(problem: Problem, stream: Terminal): string {
  return problemText(problem, stream, 'yellow', ' warning:');
}

function problemText(problem: Problem, stream: Terminal, colour: 'red' | 'yellow', label: string): string {
  const where = formatSource(problem);
  const text = formatProblem(problem).slice(where.length + 1);
  return `${coloured(stream, colour, `${where}:${label}`)}${text}`;
}
