// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import { condensedName, narrowNames, shownNames, withoutFolders } from "../../src/flamegraph/names";

test.each([
  ["void at::native::elementwise_kernel<(int)128, (int)4, at::native::AddFunctor<c10::Half> >(int, T3)", "elementwise_kernel<128, 4, AddFunctor<Half> >"],
  ["void at::native::(anonymous namespace)::softmax<float, (bool)1>(float*, int)", "softmax<float, 1>"],
  ["void at::native::<unnamed>::CatArrayBatchedCopy<T1, (a::Kind)-2>(T1 *)", "CatArrayBatchedCopy<T1, -2>"],
  ["void k<f(at::Iterator&)::{lambda()#3}::operator()() const::{lambda(c10::BFloat16)#1}>(int) [clone .kd]", "k<f(Iterator&)::{lambda()#3}::operator()() const::{lambda(BFloat16)#1}>"],
  ["void k<4, void at::impl<Add>(at::Iterator&)::{lambda(int)#1}, void const*, void *>(int)", "k<4, impl<Add>(Iterator&)::{lambda(int)#1}, void const*, void *>"],
  ["void g<Body::operator()>(int)", "g<Body::operator()>"],
  ["ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", "ncclKernel_AllReduce_RING_LL_Sum_float"],
  ["sgemm_128x64_nn", "sgemm_128x64_nn"],
  ["[memcpy HtoD]", "[memcpy HtoD]"],
  ["(int)", "(int)"],
  ["f)", "f)"],
  ["", ""],
])("a kernel's condensed name: %s", (name, condensed) => {
  expect(condensedName(name)).toBe(condensed);
});

test.each([
  ["/usr/bin/python3 -u /home/me/project/train.py --data /mnt/data/x --out=/tmp/y", "python3 -u train.py --data x --out=/tmp/y"],
  ["./train.py a/b", "./train.py a/b"],
  ["ls / /tmp/", "ls / tmp/"],
  ["", ""],
])("a command line without folders: %s", (command, shown) => {
  expect(withoutFolders(command)).toBe(shown);
  expect(shownNames([command, `${command} (pid 411)`], ["process", "process"])).toEqual([shown, `411 ${shown}`]);
});

test("only kernels are condensed, and only where they then differ", () => {
  const names = ["void a::f(int)", "void a::g(int)", "void a::g(long)", "a::g(int)", "void a::f(int)"];
  expect(shownNames(names, ["gpu", "gpu", "gpu", "native", "gpu"])).toEqual(["f", "void a::g(int)", "void a::g(long)", "a::g(int)", "f"]);
});

test("names that begin alike are cut to where they differ, at the beginning of a word or, in a long one, of its part", () => {
  const alike = ["elementwise_kernel<4, CUDAFunctor_add<float>>", "elementwise_kernel<4, CUDAFunctorOnSelf_add<float>>", "elementwise_kernel<4, silu>"];
  expect(narrowNames([...alike, "gemm", "gemm_nt"])).toEqual([
    "elementwise…_add<float>>",
    "elementwise…OnSelf_add<float>>",
    "elementwise…silu>",
    "gemm",
    "gemm_nt",
  ]);
  expect(narrowNames(["vectorized_elementwise_kernel<4, add>", "vectorized_elementwise_kernel<8, add>"])).toEqual(["vectorized_…4, add>", "vectorized_…8, add>"]);
  expect(narrowNames(["aaaaaaaaaaaaaaaaaaaaaaaaaa1", "aaaaaaaaaaaaaaaaaaaaaaaaaa2"])).toEqual(["aaaaaaaaaaaaaaaaaaaaaaaaaa1", "aaaaaaaaaaaaaaaaaaaaaaaaaa2"]);
  const functor = (size: number, last: string) => `elementwise_kernel<${size}, gpu_kernel_impl<CUDAFunctor_add<float>, ${last}>>`;
  expect(narrowNames([functor(128, "int"), functor(128, "long"), functor(256, "int"), functor(256, "long")])).toEqual([
    "elementwise…128, gpu_k…int>>",
    "elementwise…128, gpu_k…long>>",
    "elementwise…256, gpu_k…int>>",
    "elementwise…256, gpu_k…long>>",
  ]);
  expect(narrowNames(["the_same_name_of_a_kernel<1>", "the_same_name_of_a_kernel<1>"])).toEqual(["the_same_name_of_a_kernel<1>", "the_same_name_of_a_kernel<1>"]);
});

test("no name is cut within a character of two units", () => {
  const rockets = ["kernel_of_🚀🚀🚀", "kernel_of_🚀🚀🚁", "kernel_of_🛸🚀🚀", "kernel_🚀🚀🚀🚀🚀🚀🚀🚀_a", "kernel_🚀🚀🚀🚀🚀🚀🚀🚀_b", "kernel_🚀🚀🚀🚀🚀🚀🚀🚁🚁"];
  for (const name of narrowNames(rockets)) expect(name).not.toMatch(/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/);
});
