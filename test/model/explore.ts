/** What may happen in some states of a model. */
export interface Step<State> {
  readonly name: string;
  readonly next: State;
}

/** A model with a finite number of states. */
export interface Model<State> {
  readonly initial: State;
  stepsOf(state: State): readonly Step<State>[];
  /** The same text for the same states, and no others. */
  keyOf(state: State): string;
  stateOf(key: string): State;
  /** What is wrong in a state. */
  problemOf(state: State, steps: readonly Step<State>[]): string | undefined;
}

export interface Explored {
  /** The number of different states that were seen. */
  readonly states: number;
  /** The number of steps to the states that take the most. */
  readonly depth: number;
  /** The shortest way to a state that is wrong. */
  readonly found: { readonly problem: string; readonly steps: readonly string[] } | undefined;
}

/** Visits every state that steps lead to, the nearest first, until one is wrong. */
export function explore<State>(model: Model<State>, mostStates = 3_000_000): Explored {
  // In the order in which they were seen, in which they are visited: also the ones that are added meanwhile.
  const seen = new Set([model.keyOf(model.initial)]);
  // By the number of the state in this order.
  const [cameFrom, cameBy, depths] = [[-1], [''], [0]];
  let at = 0;
  for (const visited of seen) {
    const state = model.stateOf(visited);
    const depth = depths[at] as number;
    const steps = model.stepsOf(state);
    const problem = model.problemOf(state, steps);
    if (problem !== undefined)
      return { states: seen.size, depth, found: { problem, steps: wayTo(at, cameFrom, cameBy) } };
    for (const { name, next } of steps) {
      const key = model.keyOf(next);
      if (seen.has(key)) continue;
      seen.add(key);
      cameFrom.push(at);
      cameBy.push(name);
      depths.push(depth + 1);
    }
    if (seen.size > mostStates) throw new Error(`the model has more than ${mostStates} states`);
    at++;
  }
  return { states: seen.size, depth: depths.at(-1) as number, found: undefined };
}

function wayTo(state: number, cameFrom: readonly number[], cameBy: readonly string[]): string[] {
  const steps: string[] = [];
  for (let at = state; at > 0; at = cameFrom[at] ?? 0) steps.unshift(cameBy[at] ?? '');
  return steps;
}
