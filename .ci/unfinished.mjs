/**
 * A reporter of Vitest for alone.mjs: writes to the file that REPORT names which files did not pass, and how many errors are outside of all
 * tests. The reporter `json` calls a file passed whose worker ended before its tests, and has no errors outside of tests.
 */
import { writeFileSync } from 'node:fs';
import { relative } from 'node:path';

export default class Unfinished {
  #files = [];

  onTestRunStart(specifications) {
    this.#files = specifications.map(({ moduleId }) => moduleId);
  }

  onTestRunEnd(modules, errors) {
    const ended = modules.filter((module) => ['passed', 'skipped'].includes(module.state()));
    const passed = new Set(ended.map(({ moduleId }) => moduleId));
    const failed = this.#files.filter((file) => !passed.has(file)).map((file) => relative(process.cwd(), file));
    // For Vitest, a run passes if no file has failed, although one may not have ended.
    if (failed.length > 0) process.exitCode = 1;
    writeFileSync(process.env.REPORT, JSON.stringify({ failed, errors: errors.length }));
  }
}
