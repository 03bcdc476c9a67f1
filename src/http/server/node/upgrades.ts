import { type IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { ClientConnections } from '../client-connections.ts';
import { ClientRequest } from './client-request.ts';
import { NodeTurn } from './node-turn.ts';
import type { Serve } from './request-feed.ts';

/** Serves WebSocket handshakes and CONNECT, whose connections Node's server lets go of. */
export function serveUpgrades(connections: ClientConnections, serve: Serve): void {
  for (const name of ['upgrade', 'connect']) {
    connections.server.on(name, (request: IncomingMessage, socket: Socket) => {
      const connection = connections.of(socket);
      if (!(request instanceof ClientRequest) || connection === undefined || socket.destroyed) return;
      if (connection.isClosing) return;
      const response = new ServerResponse(request);
      response.shouldKeepAlive = false;
      response.assignSocket(socket);
      new NodeTurn(connection, request, response);
      // Node's server no longer passes this on.
      const onDrain = () => response.emit('drain');
      socket.on('drain', onDrain);
      response.once('close', () => socket.off('drain', onDrain));
      response.once('finish', () => {
        // As Node ends other responses: the request has ended, and its connection may take a second longer.
        response.detachSocket(socket);
        response.emit('close');
        connection.linger();
      });
      serve(request, response);
    });
  }
}
