/**
 * Runs each test file that failed in a run of all tests once more, with nothing beside it: `node .ci/alone.mjs`. Reads the report that
 * unfinished.mjs wrote to the file that REPORT names. On two cores that other work shares, a file can lose its race against the other files.
 * A file that fails alone as well fails the run, and so does a run in which more than five files failed, that had an error outside of its
 * tests, or that did not get to its end.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';

const MOST_FILES = 5;

function end(message) {
  console.error(message);
  process.exit(1);
}

const { REPORT = '' } = process.env;
if (!existsSync(REPORT)) end('The tests did not get to their end.');
const { failed, errors } = JSON.parse(readFileSync(REPORT, 'utf8'));
if (errors > 0) end(`${errors} errors are outside of all tests: see above. No file is run again.`);
if (failed.length === 0) end('No file failed, but the run did: see the errors above.');
if (failed.length > MOST_FILES) end(`${failed.length} files failed. None is run again.`);
const broken = failed.filter((file) => {
  console.log(`\n${file} failed beside other tests. Now it runs alone.`);
  const args = ['run', file, '--reporter', 'default', '--reporter', './.ci/unfinished.mjs'];
  const { status } = spawnSync(process.execPath, ['node_modules/vitest/vitest.mjs', ...args], { stdio: 'inherit' });
  return status !== 0;
});
if (broken.length > 0) end(`\nFail alone, too: ${broken.join(', ')}.`);
console.log(`\nPassed alone only: ${failed.join(', ')}. Such a test does not bear a busy machine and needs a repair.`);
