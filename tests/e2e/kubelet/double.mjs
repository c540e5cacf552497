// SPDX-License-Identifier: Apache-2.0
// A simulated kubelet and container runtime for tests/e2e/pods_test.py, on gRPC's own server for Node:
//   node double.mjs SOCKET STATE.json
// STATE.json is read at each call: {"List": {"reply": {…}}, "ListContainers": {…}, "ListPodSandbox": {…}}. A call that it
// lacks is unimplemented; instead of a reply it may have "hang": true, or "pods": N, as many with one GPU each. N is that
// of the start: so many take a second to make, and the client waits for three.
import { chmodSync, readFileSync } from 'node:fs';
import { Server, ServerCredentials, loadPackageDefinition, status } from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';

const [socket, stateFile] = process.argv.slice(2);
const definition = loadPackageDefinition(loadSync(['podresources.proto', 'cri.proto'].map((file) => new URL(file, import.meta.url).pathname),
  { keepCase: true }));

const manyPods = (count) => ({
  pod_resources: Array.from({ length: count }, (_, i) => ({
    name: `pod-${i}-${'x'.repeat(200)}`,
    namespace: 'n'.repeat(60),
    containers: [{ name: 'worker', devices: [{ resource_name: 'nvidia.com/gpu', device_ids: [`GPU-${i}-${'d'.repeat(200)}`] }] }],
  })),
});

const state = () => JSON.parse(readFileSync(stateFile, 'utf8'));
const service = definition.v1.PodResourcesLister.service;
const serialize = service.List.responseSerialize;
const madeCount = state().List?.pods;
const made = madeCount && serialize(manyPods(madeCount));
const List = { ...service.List, responseSerialize: (reply) => (Buffer.isBuffer(reply) ? reply : serialize(reply)) };

const answer = (name) => (call, callback) => {
  const told = state()[name];
  if (told === undefined) callback({ code: status.UNIMPLEMENTED, details: `unknown method ${name}` });
  else if (told.pods !== undefined && told.pods === madeCount) callback(null, made);
  else if (told.pods !== undefined) callback({ code: status.INTERNAL, details: `started with ${madeCount} pods, not ${told.pods}` });
  else if (!told.hang) callback(null, told.reply);
};

const server = new Server({ 'grpc.max_send_message_length': -1 });
server.addService({ ...service, List }, { List: answer('List') });
server.addService(definition.runtime.v1.RuntimeService.service,
  { ListContainers: answer('ListContainers'), ListPodSandbox: answer('ListPodSandbox') });
server.bindAsync(`unix:${socket}`, ServerCredentials.createInsecure(), (error) => {
  if (error) throw error;
  chmodSync(socket, 0o600); // as kubelet and containerd leave it
  console.log('listening');
});
