import type { Outbox } from './outbox.ts';

/** What a store offers to the replicas that share it, besides the counts: channels with a record, boards, and its clock. */
export interface SharedStore {
  /**
   * Subscribes to the channel of a topic. A message may arrive more than once, and late by at most the time between two reads of the
   * record.
   */
  subscribe(topic: string, listener: ChannelListener): Channel;
  /** Calls `use` with the record of a topic. Rejects if the store cannot be reached within `connectMs`, or refuses. */
  withRecord<T>(topic: string, use: (record: MessageRecord) => Promise<T>, connectMs?: number): Promise<T>;
  /** Opens the board of a topic, which connects and reconnects. It never queues a command. */
  openBoard(topic: string, replica: string): Board;
  /** Opens the list of the replicas that are alive. It never queues a command. */
  openPresence(replica: string): Presence;
  /** Opens the claims. It never queues a command. */
  openClaims(): SharedClaims;
  /** Opens the messages of a topic that wait until they are delivered. It never queues a command. */
  openOutbox(topic: string): Outbox;
  /** Opens a text that all replicas use. It never queues a command. */
  openAgreement(topic: string): Agreement;
  /** Opens the archive of a topic. It never queues a command. */
  openArchive(topic: string): Archive;
}

/** `name` has a point, which names of buckets lack. */
export interface Claim {
  readonly tag: string;
  readonly name: string;
  readonly owner: string;
}

/** What one of the replicas does for all. */
export interface SharedClaims {
  /** Returns whether this replica is the first to claim it within `lifeMs`. Rejects if the store cannot be asked. */
  claim(claim: Claim, lifeMs: number): Promise<boolean>;
  /** Makes a claim of this replica last for `lifeMs` from now. Rejects likewise. */
  keep(claim: Claim, lifeMs: number): Promise<void>;
  close(): void;
}

/** A text that all replicas use: the first one that any of them proposes. */
export interface Agreement {
  /**
   * Returns the text, which is then kept for `lifeMs`. Rejects if the store cannot be asked.
   *
   * @param proposed letters, digits, `_` and `-`; of the same length every time
   */
  text(proposed: string, lifeMs: number): Promise<string>;
  close(): void;
}

/** Bytes by name, which only grow and disappear some time after the first of them. */
export interface Archive {
  /** Adds bytes, and keeps all of this name for `lifeMs` from the first. Returns how many there are. Rejects if the store does not take them. */
  append(name: string, bytes: Buffer, lifeMs: number): Promise<number>;
  /** Empty if there are none. Rejects if the store cannot be read. */
  read(name: string): Promise<Buffer>;
  close(): void;
}

/** Longer texts are not messages. A reason of 200 characters, an author and an id come to less than that. */
export const LONGEST_MESSAGE = 4_096;

/** A reading of the clock of the store. */
export interface ClockReading {
  /** Unix time by the clock of the store. */
  readonly nowMs: number;
  /** When it was asked for and answered, by `performance.now()`. */
  readonly sentMs: number;
  readonly answeredMs: number;
}

/** Receives a channel's events. What a function throws is passed to `failed`, and changes nothing else. */
export interface ChannelListener {
  /**
   * A message: at once while connected, and at every read of the record until it expires.
   *
   * @param untilMs when the record drops it; undefined for a message that was published just now
   */
  message(text: string, untilMs?: number): void;
  /**
   * Called when messages stop arriving, with the reason, and when they arrive again. With a reason although connected: they arrive
   * late, by up to `pace.lookMs`, because the subscription is refused.
   */
  connected(isConnected: boolean, problem?: string): void;
  /**
   * The clock of the store was read. Called before the first message, and at every read of the record.
   *
   * @param isReference whether it is the clock that all replicas go by: a Cluster has several, and replicas go by the one that has the live limits
   */
  time?(reading: ClockReading, isReference: boolean): void;
  /** This many texts of the record are too long for a message. */
  leftOut?(count: number): void;
  /** Returns messages that the record has lost; they are written again. */
  missingFrom?(record: ReadonlySet<string>): readonly RecordedMessage[];
  restored?(count: number): void;
  failed?(error: unknown): void;
}

export interface Channel {
  /** Resolves once everything that was published before has arrived; never rejects. */
  readonly subscribed: Promise<void>;
  close(): void;
}

export interface RecordedMessage {
  readonly text: string;
  readonly untilMs: number;
}

/** What became of messages that the store has recorded. */
export interface Published {
  /** How many subscribers received them; in a Cluster, only those at one node. */
  readonly received: number;
  /** Why they were not published. They are in the record all the same, which every replica reads every few seconds. */
  readonly notPublished: string | undefined;
}

/** The store gave no answer: it may have carried out the command. */
export class UnknownOutcome extends Error {
  override readonly name = 'UnknownOutcome';
}

/** The unexpired messages of a channel. */
export interface MessageRecord {
  /** Reads the clock of the store, and no message. */
  time(): Promise<ClockReading>;
  /** Unix time by the clock of the store. */
  nowMs(): Promise<number>;
  /** The texts of all unexpired messages. */
  read(): Promise<readonly string[]>;
  /** All unexpired messages. */
  messages(): Promise<readonly RecordedMessage[]>;
  /**
   * Replaces `replaced` by messages in the record and publishes them, all in one step. Rejects with an `UnknownOutcome` if no answer came,
   * and with any other error if nothing was changed.
   */
  publish(messages: readonly RecordedMessage[], replaced?: readonly string[]): Promise<Published>;
  /** Whether the record survives a restart of the store; undefined if unknown. */
  isLasting(): Promise<boolean | undefined>;
  /** Whether the store keeps nothing at all on disk. False if unknown. */
  isForgetful(): Promise<boolean>;
}

/** A board on which every replica keeps one text, for the others to read. A text that is not renewed disappears. */
export interface Board {
  /** Replaces this replica's text on the board. Rejects if the store does not take it. */
  post(text: string): Promise<void>;
  /** The texts of all replicas by name, this one included. Rejects if the store cannot be read. */
  read(): Promise<BoardReading>;
  /** Takes this replica's text off the board. */
  close(): Promise<void>;
}

export interface BoardReading {
  readonly texts: ReadonlyMap<string, string>;
  /** Names and texts that were left out for their length. */
  readonly leftOut: number;
}

/** Which replicas are alive: those that have announced themselves within `pace.presenceMs`. */
export interface Presence {
  /** Announces this replica, and counts those that are alive. Rejects if the store cannot be read or written. */
  announce(): Promise<SeenReplicas>;
  /** Takes this replica off the list. */
  close(): Promise<void>;
}

export interface SeenReplicas {
  /** Replicas that are alive, this one included: 1 or more. */
  readonly replicas: number;
  /** Whether the list still had this replica. If not, others that are alive may be missing as well. */
  readonly isContinued: boolean;
}
