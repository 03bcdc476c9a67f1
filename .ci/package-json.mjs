// Prints the package.json of the published package: the repository's with the published name, without what only a checkout needs.
// `dist` contains the packages that it uses, so it depends on none. Reads the names from the environment, see .github/names.env.
import { readFileSync } from 'node:fs';

const { NPM_PACKAGE, NPM_REGISTRY, SOURCE, HOME_PAGE } = process.env;
const { private: _, workspaces, overrides, dependencies, devDependencies, scripts, ...kept } = JSON.parse(
  readFileSync('package.json', 'utf8'),
);
const published = {
  ...kept,
  name: NPM_PACKAGE,
  homepage: HOME_PAGE,
  repository: { type: 'git', url: `git+${SOURCE}.git` },
  publishConfig: { access: 'public', registry: NPM_REGISTRY },
};
console.log(JSON.stringify(published, null, 2));
