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
  const seen = new Set([model.keyOf(model.initial)]);
  // By the number of the state, in the order in which they were seen.
  const [cameFrom, cameBy] = [[-1], ['']];
  let [first, depth] = [0, 0];
  for (let level = [model.initial]; level.length > 0; depth++) {
    const following: State[] = [];
    for (const [index, state] of level.entries()) {
      const steps = model.stepsOf(state);
      const problem = model.problemOf(state, steps);
      if (problem !== undefined)
        return {
          states: seen.size,
          depth,
          found: { problem, steps: wayTo(first + index, cameFrom, cameBy) },
        };
      for (const { name, next } of steps) {
        const key = model.keyOf(next);
        if (seen.has(key)) continue;
        seen.add(key);
        cameFrom.push(first + index);
        cameBy.push(name);
        following.push(next);
      }
      if (seen.size > mostStates) throw new Error(`the model has more than ${mostStates} states`);
    }
    first += level.length;
    level = following;
  }
  return { states: seen.size, depth: depth - 1, found: undefined };
}

function wayTo(state: number, cameFrom: readonly number[], cameBy: readonly string[]): string[] {
  const steps: string[] = [];
  for (let at = state; at > 0; at = cameFrom[at] ?? 0) steps.unshift(cameBy[at] ?? '');
  return steps;
}
