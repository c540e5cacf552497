// SPDX-License-Identifier: Apache-2.0

// On everything that comes, in part at least, from the simulated GPU.
export function Simulated({ title = "This comes from the simulated GPU, not from hardware" }: { title?: string }) {
  return (
    <span class="simulated" title={title}>
      simulated
    </span>
  );
}
