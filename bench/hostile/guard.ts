import { INPUTS, PLAIN } from './inputs.ts';
import { figuresOf, timesPlainPerKib } from './measure.ts';
import { type Stage, startStage } from './stage.ts';

/**
 * Plain GETs whose CPU time a KiB of the worst input may take. Seen, idle and busy: 3.8 to 4.8. With 0.3.0 it was 42 to 74 for a JSON body,
 * 35 to 51 for combining marks and 20 to 38 for chunks of one byte.
 */
const MOST = 12;

const WARM_UP_US = 1_500_000;
const BUDGET_US = 60_000;
const MOST_TRIES = 3;

/** Measures all hostile inputs, and again those above the bound. @returns whether each was below it once */
export async function guardHostileInputs(say: (line: string) => void): Promise<boolean> {
  const stage = await startStage(undefined, false);
  try {
    await figuresOf(stage, PLAIN, WARM_UP_US);
    let suspects = INPUTS;
    for (let tries = 0; tries < MOST_TRIES && suspects.length > 0; tries++)
      suspects = await aboveBound(stage, suspects, say);
    return suspects.length === 0;
  } finally {
    await stage.stop();
  }
}

/** Says which are above the bound, or which is the worst below it. */
async function aboveBound(stage: Stage, inputs: typeof INPUTS, say: (line: string) => void) {
  const seen = [];
  for (const input of inputs)
    seen.push({ input, times: timesPlainPerKib(await figuresOf(stage, input, BUDGET_US)) });
  seen.sort((one, other) => other.times - one.times);
  const above = seen.filter(({ times }) => times > MOST);
  for (const { input, times } of above.length > 0 ? above : seen.slice(0, 1)) {
    const verdict = times <= MOST ? 'ok  ' : 'FAIL';
    say(
      `${verdict} a KiB of ${input.name}: ${times.toFixed(1)} times the CPU time of a plain GET, at most ${MOST}`,
    );
  }
  return above.map(({ input }) => input);
}
