import { afterAll, beforeAll, expect, it } from 'vitest';
import { INPUTS } from '../../bench/hostile/inputs.ts';
import { statusFor } from '../../bench/hostile/measure.ts';
import { type Stage, startStage } from '../../bench/hostile/stage.ts';

let stage: Stage;
beforeAll(async () => {
  stage = await startStage(undefined, false);
});
afterAll(() => stage.stop());

it.each(INPUTS)('$name: $status', async (input) => {
  expect(await statusFor(stage, input)).toBe(input.status);
});

it('no two inputs have one name', () => {
  expect(new Set(INPUTS.map(({ name }) => name)).size).toBe(INPUTS.length);
});
