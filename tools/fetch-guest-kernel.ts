/**
 * Brings the kernel of the tests' guests into the checkout's cache; does nothing where it is there. Called by the
 * bootstrap, writes to standard error only, and ends with 1 where it cannot be had.
 */
import { fetchGuestKernel } from '../packages/lab/src/guest/guest-kernel.ts';

try {
  fetchGuestKernel((text) => console.error(text));
} catch (error) {
  console.error((error as Error).message);
  process.exitCode = 1;
}
