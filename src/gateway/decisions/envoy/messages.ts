/** The messages of rls.proto and health.proto, and the services that exchange them. */
import { fileURLToPath } from 'node:url';
import type { MethodDefinition } from '@grpc/grpc-js';
import protobuf from 'protobufjs';
import type { Entry } from '../../../domain/limits/descriptors.ts';

/** A 64-bit number: an object where JavaScript's numbers might be too small. */
export type WholeNumber = number | { toNumber(): number };

export interface RateLimitOverride {
  readonly requestsPerUnit: number;
  readonly unit: number;
  readonly unitMultiplier: { readonly value: WholeNumber } | null;
}

export interface RateLimitDescriptor {
  readonly entries: readonly Entry[];
  readonly limit: RateLimitOverride | null;
  readonly hitsAddend: { readonly value: WholeNumber } | null;
  readonly isNegativeHits: boolean;
}

export interface RateLimitRequest {
  readonly domain: string;
  readonly descriptors: readonly RateLimitDescriptor[];
  readonly hitsAddend: number;
}

export const OK = 1;
export const OVER_LIMIT = 2;

export interface DescriptorStatus {
  readonly code: typeof OK | typeof OVER_LIMIT;
  readonly currentLimit?: {
    readonly requestsPerUnit: number;
    readonly unit: number;
    readonly name: string;
    readonly unitMultiplier?: { readonly value: number } | undefined;
  };
  readonly limitRemaining?: number;
  readonly durationUntilReset?: { readonly seconds: number };
}

export interface HeaderValue {
  readonly key: string;
  readonly value: string;
}

/** google.protobuf.Struct */
export interface Struct {
  readonly fields: Readonly<Record<string, StructValue>>;
}

export type StructValue =
  | { readonly nullValue: 0 }
  | { readonly numberValue: number }
  | { readonly stringValue: string }
  | { readonly boolValue: boolean }
  | { readonly structValue: Struct }
  | { readonly listValue: { readonly values: readonly StructValue[] } };

export interface RateLimitResponse {
  readonly overallCode: typeof OK | typeof OVER_LIMIT;
  readonly statuses: readonly DescriptorStatus[];
  readonly responseHeadersToAdd: readonly HeaderValue[];
  readonly dynamicMetadata?: Struct | undefined;
}

const root = protobuf.loadSync(
  ['rls.proto', 'health.proto'].map((file) => fileURLToPath(new URL(file, import.meta.url))),
);

/** A call with one request and one response, for a server of grpc-js. */
function unary<Request, Response>(service: string, name: string): MethodDefinition<Request, Response> {
  const method = root.lookupService(service).methods[name];
  method?.resolve();
  const { resolvedRequestType: request, resolvedResponseType: response } = method ?? {};
  if (!request || !response) throw new TypeError(`${service} has no ${name}`);
  return {
    path: `/${service}/${name}`,
    requestStream: false,
    responseStream: false,
    requestSerialize: (message) => bytesOf(request, message),
    requestDeserialize: (bytes) => request.decode(bytes) as Request,
    responseSerialize: (message) => bytesOf(response, message),
    responseDeserialize: (bytes) => response.decode(bytes) as Response,
  };
}

function bytesOf(type: protobuf.Type, message: unknown): Buffer {
  return type.encode(message as object).finish() as Buffer;
}

export const RATE_LIMIT_SERVICE = {
  shouldRateLimit: unary<RateLimitRequest, RateLimitResponse>(
    'envoy.service.ratelimit.v3.RateLimitService',
    'ShouldRateLimit',
  ),
};

export const HEALTH_SERVICE = {
  check: unary<{ readonly service: string }, { readonly status: 1 | 2 }>('grpc.health.v1.Health', 'Check'),
};
