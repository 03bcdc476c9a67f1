import type { Command, OutputConfiguration } from 'commander';
import { ConfigError, formatProblem, formatSource, type Problem } from '../../config/problem.ts';
import { maskUrls } from '../../config/reader/mask.ts';
import { printable } from '../../domain/printable.ts';
import { failureLines } from '../../process/failure.ts';
import type { Line, Style } from './line.ts';
import { standardError, standardOutput } from './output.ts';

/** The message of a failed command, one line for each problem of the configuration. */
export function errorLines(error: unknown): readonly Line[] {
  if (error instanceof ConfigError) return error.problems.map((problem) => problemLine(problem, 'red', ''));
  return failureLines(error).map((text) => [{ style: 'red', text }]);
}

/** `limits.yaml:3: warning: accounts.acct_2: expired at …` */
export function warningLine(problem: Problem): Line {
  return problemLine(problem, 'yellow', ' warning:');
}

function problemLine(problem: Problem, style: Style, label: string): Line {
  const where = formatSource(problem);
  const text = formatProblem(problem).slice(where.length + 1);
  return [{ style, text: `${where}:${label}` }, text];
}

/** Commander's errors repeat what was given, and may end with a suggestion in a line of its own. */
const SUGGESTION = /\n(?=\(Did you mean )/;

const OUTPUT: OutputConfiguration = {
  writeOut: (text) => void standardOutput().write(text),
  writeErr: (text) => void standardError().write(text),
  outputError(text, write) {
    const lines = text.replace(/\n$/, '').split(SUGGESTION);
    write(lines.map((line) => `${maskUrls(printable(line))}\n`).join(''));
  },
};

/**
 * Makes a command and its subcommands write as all else does. Each error names the help of its own command.
 *
 * @param name such as `weir limit set`
 */
export function writeSafely(command: Command, name = command.name()): void {
  const lists = command.commands.length > 0 ? 'the commands' : 'its arguments and options';
  command.configureOutput(OUTPUT).showHelpAfterError(`(${name} --help lists ${lists})`);
  for (const subcommand of command.commands) writeSafely(subcommand, `${name} ${subcommand.name()}`);
}
