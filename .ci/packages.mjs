// Installs Debian's packages for the tests, before anything else uses one of them.
import { requirePackages } from '../test/fixtures/packages.ts';

requirePackages();
