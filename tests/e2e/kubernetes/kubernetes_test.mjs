// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseAllDocuments } from 'yaml';

const ROOT = resolve('../../..');
const render = (folder) => parseAllDocuments(execFileSync('kubectl', ['kustomize', join(ROOT, folder)], { encoding: 'utf8' }),
  { version: '1.1' }).map((document) => document.toJS());
const base = render('deploy/kubernetes');
const admissionObjects = render('deploy/kubernetes/admission');
const objects = [...base, ...admissionObjects];
const of = (kind, name) => objects.find((object) => object.kind === kind && object.metadata.name === name);
const agent = of('DaemonSet', 'gpusonde-agent').spec.template.spec;
const server = of('Deployment', 'gpusonde-server').spec.template.spec;
const admission = of('Deployment', 'gpusonde-admission').spec.template.spec;

// The compiler's messages about objects, each with the type that Kubernetes has for its kind.
function complaints(objects) {
  const folder = mkdtempSync(join(tmpdir(), 'gpusonde-kubernetes-'));
  try {
    symlinkSync(resolve('node_modules'), join(folder, 'node_modules'));
    writeFileSync(join(folder, 'objects.ts'), objects.map((object, i) => {
      // Its folders have the group's first name.
      const path = object.apiVersion.includes('/') ? object.apiVersion.replace(/\.[^/]*/, '') : `core/${object.apiVersion}`;
      return `export const object${i}: import('kubernetes-types/${path}').${object.kind} = ${JSON.stringify(object, null, 1)};\n`;
    }).join(''));
    const done = spawnSync(join(ROOT, 'web/node_modules/.bin/tsc'), ['--noEmit', '--strict', '--skipLibCheck', '--module',
      'esnext', '--moduleResolution', 'bundler', 'objects.ts'], { cwd: folder, encoding: 'utf8' });
    assert.notEqual(done.status, null, String(done.error));
    return done.status === 0 ? '' : done.stdout;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const tests = {
  'every object has the type of its kind'() {
    assert.deepEqual(base.map((object) => object.kind).sort(),
      ['DaemonSet', 'Deployment', 'Namespace', 'PersistentVolumeClaim', 'Service', 'ServiceAccount']);
    assert.deepEqual(admissionObjects.map((object) => object.kind).sort(), ['Deployment', 'MutatingWebhookConfiguration', 'Service']);
    // kubernetes-types lacks two members of a webhook's rules, which a test of their own compares.
    const typed = structuredClone(objects);
    for (const { webhooks = [] } of typed) for (const { rules } of webhooks) for (const rule of rules) {
      delete rule.resources;
      delete rule.scope;
    }
    assert.equal(complaints(typed), '');
  },

  'an unknown key or a wrong type would be found'() {
    const unknown = structuredClone(of('DaemonSet', 'gpusonde-agent'));
    unknown.spec.template.spec.containers[0].securityContext.privilegd = true;
    const wrong = structuredClone(of('Service', 'gpusonde-server'));
    wrong.spec.ports[0].port = '443';
    const found = complaints([unknown, wrong]);
    assert.match(found, /privilegd/);
    assert.match(found, /'string' is not assignable to type 'number'/);
  },

  'agents have the capabilities of the systemd unit and no others'() {
    const unit = readFileSync(join(ROOT, 'deploy/systemd/gpusonde-agent.service'), 'utf8');
    const capabilities = unit.match(/^CapabilityBoundingSet=(.*)$/m)[1].split(' ').map((name) => name.replace(/^CAP_/, ''));
    const { add, drop } = agent.containers[0].securityContext.capabilities;
    assert.deepEqual(drop, ['ALL']);
    assert.deepEqual([...add].sort(), capabilities.sort());
  },

  'every volume is mounted, and every mount is a volume'() {
    for (const pod of [agent, server, admission]) {
      const mounts = pod.containers.flatMap((container) => container.volumeMounts.map((mount) => mount.name));
      assert.deepEqual([...new Set(mounts)].sort(), pod.volumes.map((volume) => volume.name).sort());
    }
  },

  'agents see the folders of the sockets that they ask, and may not write there'() {
    const [{ volumeMounts }] = agent.containers;
    for (const folder of ['/var/lib/kubelet/pod-resources', '/run/containerd']) {
      const mount = volumeMounts.find(({ mountPath }) => mountPath === folder);
      assert.equal(mount.readOnly, true, folder);
      const volume = agent.volumes.find(({ name }) => name === mount.name);
      assert.deepEqual(volume.hostPath, { path: folder, type: 'DirectoryOrCreate' });
    }
  },

  'agents send to the address that the service has, over TLS and with tokens'() {
    const [container] = server.containers;
    const ports = of('Service', 'gpusonde-server').spec.ports;
    assert.deepEqual(ports.map(({ port, targetPort }) => [port, targetPort]), [[443, 'agents'], [7171, 'pages']]);
    for (const [name, flag] of [['agents', '--listen'], ['pages', '--pages-listen']]) {
      const { containerPort } = container.ports.find((port) => port.name === name);
      assert.ok(container.args.includes(`${flag}=0.0.0.0:${containerPort}`), name);
    }
    assert.ok(agent.containers[0].args.includes('--server=https://gpusonde-server.gpusonde.svc'));
    for (const probe of [container.livenessProbe, container.readinessProbe]) assert.equal(probe.httpGet.scheme, 'HTTPS');
  },

  'the webhook is asked where its service listens, about new pods with the label only, and stops none'() {
    const [webhook] = of('MutatingWebhookConfiguration', 'gpusonde-admission').webhooks;
    const service = of('Service', 'gpusonde-admission');
    const source = readFileSync(join(ROOT, 'src/admission/webhook.h'), 'utf8');
    assert.deepEqual(webhook.clientConfig.service, { namespace: service.metadata.namespace, name: service.metadata.name,
      path: source.match(/kPath = "(.*)"/)[1], port: service.spec.ports[0].port });
    const [container] = admission.containers;
    assert.equal(service.spec.ports[0].targetPort, container.ports[0].name);
    assert.ok(container.args.includes(`--listen=0.0.0.0:${container.ports[0].containerPort}`));
    assert.deepEqual(service.spec.selector, of('Deployment', 'gpusonde-admission').spec.template.metadata.labels);
    const patch = readFileSync(join(ROOT, 'src/admission/pod_patch.h'), 'utf8');
    const [, label, value] = patch.match(/kLabel = "(.*)", kLabelValue = "(.*)"/);
    assert.deepEqual(webhook.objectSelector, { matchLabels: { [label]: value } });
    assert.deepEqual(webhook.rules, [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'], scope: 'Namespaced' }]);
    assert.equal(webhook.failurePolicy, 'Ignore');
    assert.equal(webhook.sideEffects, 'None');
    for (const probe of [container.livenessProbe, container.readinessProbe]) assert.equal(probe.httpGet.scheme, 'HTTPS');
  },

  'every file that an option names is in a volume that is mounted there'() {
    for (const pod of [agent, server, admission]) {
      const [{ args, volumeMounts }] = pod.containers;
      const files = args.map((arg) => arg.match(/^--(?:tokens|token-file|tls-\w+)=(.*)$/)?.[1]).filter(Boolean);
      assert.equal(files.length, pod === server ? 3 : 2);
      for (const file of files) assert.ok(volumeMounts.some(({ mountPath }) => file.startsWith(`${mountPath}/`)), file);
    }
  },
};

let failed = 0;
for (const [name, test] of Object.entries(tests)) {
  try {
    test();
    console.log(`ok ${name}`);
  } catch (error) {
    failed += 1;
    console.log(`FAILED ${name}\n${error.stack}`);
  }
}
console.log(`${Object.keys(tests).length - failed} passed, ${failed} failed, 0 skipped`);
process.exitCode = failed ? 1 : 0;
