// SPDX-License-Identifier: Apache-2.0

// Marks everything that comes, at least in part, from the simulated GPU.
export function Simulated({ title = "This comes from the simulated GPU, not from hardware" }: { title?: string }) {
  return (
    <span class="simulated" title={title}>
      simulated
    </span>
  );
}
