#include "tests/bench/synthetic_kineto.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace rehearse::bench {
namespace {

constexpr std::uint64_t kBase = 1'365'627'862'757'064;  // ns from baseTimeNanoseconds
constexpr std::uint32_t kProcess = 4021;
constexpr std::uint32_t kBackwardThread = 4177;
constexpr std::uint32_t kComputeStream = 7;
constexpr std::uint32_t kCollectiveStream = 20;
constexpr int kLayers = 24;

/// An operator of the framework. If it launches a kernel, it does so from the operator inside it.
struct Operator {
  std::string_view name;
  std::string_view inner;  // empty: launches nothing
  std::string_view dims;
  std::string_view types;
  std::string_view kernel;
  std::uint32_t grid;
  std::uint32_t device_ns;
};

constexpr Operator kLayer[] = {
    {"aten::layer_norm", "aten::native_layer_norm", "[[4, 1024, 2048], [], [2048], [2048], [], []]",
     R"(["c10::BFloat16", "ScalarList", "c10::BFloat16", "c10::BFloat16", "Scalar", "Scalar"])",
     "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float>("
     "int, float, c10::BFloat16 const*, c10::BFloat16 const*, c10::BFloat16 const*, float*, "
     "float*, "
     "c10::BFloat16*)",
     4096, 14'000},
    {"aten::linear", "aten::addmm", "[[4096, 2048], [6144, 2048], [6144]]",
     R"(["c10::BFloat16", "c10::BFloat16", "c10::BFloat16"])",
     "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_bias_bf16_"
     "execute_segment_k_off_kernel__5x_cublas",
     384, 190'000},
    {"aten::view", "", "[[4, 1024, 6144], []]", R"(["c10::BFloat16", "ScalarList"])", "", 0, 0},
    {"aten::transpose", "", "[[4, 1024, 16, 128], [], []]",
     R"(["c10::BFloat16", "Scalar", "Scalar"])", "", 0, 0},
    {"aten::scaled_dot_product_attention", "aten::_flash_attention_forward",
     "[[4, 16, 1024, 128], [4, 16, 1024, 128], [4, 16, 1024, 128], [], [], [], []]",
     R"(["c10::BFloat16", "c10::BFloat16", "c10::BFloat16", "", "Scalar", "Scalar", ""])",
     "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 32, 4, false, false, "
     "cutlass::bfloat16_t>, false, true, false, true, false>(Flash_fwd_params)",
     512, 95'000},
    {"aten::add", "aten::add_", "[[4, 1024, 2048], [4, 1024, 2048], []]",
     R"(["c10::BFloat16", "c10::BFloat16", "Scalar"])",
     "void at::native::vectorized_elementwise_kernel<4, "
     "at::native::CUDAFunctor_add<c10::BFloat16>, "
     "at::detail::Array<char*, 3> >(int, at::native::CUDAFunctor_add<c10::BFloat16>, "
     "at::detail::Array<char*, 3>)",
     8192, 17'000},
    {"aten::linear", "aten::addmm", "[[4096, 2048], [8192, 2048], [8192]]",
     R"(["c10::BFloat16", "c10::BFloat16", "c10::BFloat16"])",
     "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x256x64_warpgroupsize2x1x1_bias_bf16_"
     "execute_segment_k_off_kernel__5x_cublas",
     512, 260'000},
    {"aten::gelu", "aten::gelu_", "[[4, 1024, 8192], []]", R"(["c10::BFloat16", ""])",
     "void at::native::vectorized_elementwise_kernel<4, at::native::GeluCUDAKernelImpl(at::"
     "TensorIteratorBase&, at::native::GeluType)::{lambda()#1}, at::detail::Array<char*, 2> >(int)",
     32768, 41'000},
};

/// Writes events as Kineto does and counts them.
class Writer {
 public:
  Writer(std::FILE* file, const SyntheticRank& rank) : file_(file), rank_(rank) {}

  SyntheticCounts write(std::uint64_t bytes) {
    header();
    while (counts_.bytes + text_.size() < bytes) step();
    text_ += "\n  ],\n  \"traceName\": \"synthetic.pt.trace.json\"\n}\n";
    write_out();
    return counts_;
  }

 private:
  template <class... Args>
  void put(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
  }

  void write_out() {
    counts_.bytes += text_.size();
    std::fwrite(text_.data(), 1, text_.size(), file_);
    text_.clear();
  }

  std::uint64_t random(std::uint64_t below) {
    random_ = random_ * 6364136223846793005u + 1442695040888963407u;
    return (random_ >> 33) % below;
  }

  /// Between 3/4 and 5/4 of a typical length.
  std::uint64_t around(std::uint64_t typical) { return typical * 3 / 4 + random(typical / 2 + 1); }

  void header() {
    put("{{\n  \"schemaVersion\": 1,\n  \"deviceProperties\": [\n    {{\n"
        "      \"id\": 0, \"name\": \"Synthetic GPU\", \"totalGlobalMem\": 85899345920,\n"
        "      \"computeMajor\": 9, \"computeMinor\": 0, \"numSms\": 132\n    }}\n  ],\n"
        "  \"distributedInfo\": {{\"backend\": \"nccl\", \"rank\": {}, \"world_size\": {}}},\n"
        "  \"baseTimeNanoseconds\": 1700000000000000000,\n  \"traceEvents\": [",
        rank_.rank, rank_.world_size);
  }

  /// A time in microseconds, as Kineto prints nanoseconds.
  static std::string us(std::uint64_t ns) { return fmt::format("{}.{:03}", ns / 1000, ns % 1000); }

  void complete(std::string_view category, std::string_view name, std::uint32_t process,
                std::uint32_t thread, std::uint64_t start, std::uint64_t duration) {
    put("{}\n  {{\n    \"ph\": \"X\", \"cat\": \"{}\", \"name\": \"{}\", \"pid\": {}, \"tid\": "
        "{},\n"
        "    \"ts\": {}, \"dur\": {},\n    \"args\": {{\n      ",
        first_ ? "" : ",", category, name, process, thread, us(start), us(duration));
    first_ = false;
  }
  void end_arguments() { text_ += "\n    }\n  }"; }

  void host_op(std::string_view name, std::uint32_t thread, std::uint64_t start,
               std::uint64_t duration, const Operator& op) {
    complete("cpu_op", name, kProcess, thread, start, duration);
    put("\"External id\": {},\"Record function id\": {}, \"Sequence number\": {}, "
        "\"Fwd thread id\": {}, \"Input type\": {}, \"Input Dims\": {}, \"Ev Idx\": {}",
        external_, external_, sequence_, thread == kProcess ? 0 : 1, op.types, op.dims, external_);
    end_arguments();
    ++external_;
    ++counts_.host_ops;
  }

  void flow(char phase, std::uint64_t id, std::uint32_t process, std::uint32_t thread,
            std::uint64_t at) {
    put(",\n  {{\n    \"ph\": \"{}\", \"id\": {}, \"pid\": {}, \"tid\": {}, \"ts\": {},\n"
        "    \"cat\": \"ac2g\", \"name\": \"ac2g\"{}\n  }}",
        phase, id, process, thread, us(at), phase == 'f' ? ", \"bp\": \"e\"" : "");
  }

  struct Launch {
    std::uint32_t thread;
    std::uint64_t call;
    std::uint64_t call_duration;
    std::uint64_t start;
    std::uint64_t duration;
    std::uint32_t stream;
    std::uint64_t external;
    const Operator* op;  // null: the collective
  };

  /// Moves the thread's clock past the call, and the stream's clock past the kernel.
  void launch(std::uint32_t thread, std::uint32_t stream, const Operator* op,
              std::uint64_t typical) {
    std::uint64_t& free = stream == kComputeStream ? compute_free_ : collective_free_;
    const std::uint64_t call_duration = around(5'000);
    const std::uint64_t ready = std::max(free + around(1'000), now_ + around(7'000));
    const std::uint64_t duration = around(typical);
    launches_.push_back({thread, now_, call_duration, ready, duration, stream, external_ - 1, op});
    free = ready + duration;
    now_ += call_duration;
  }

  void run(const Operator& op, std::uint32_t thread, std::string_view prefix) {
    const std::uint64_t outer = now_;
    now_ += around(3'000);
    if (op.inner.empty()) {
      host_op(op.name, thread, outer, now_ - outer, op);
    } else {
      const std::uint64_t inner = now_;
      now_ += around(4'000);
      launch(thread, kComputeStream, &op, op.device_ns);
      now_ += around(1'000);
      host_op(fmt::format("{}{}", prefix, op.name), thread, outer, now_ + 1'000 - outer, op);
      host_op(op.inner, thread, inner, now_ - inner, op);
      now_ += 1'000;
    }
    now_ += around(1'500);
    ++sequence_;
  }

  /// The gradients of a layer: a collective on its own stream.
  void all_reduce() {
    const std::uint64_t start = now_;
    now_ += around(4'000);
    collective_free_ = std::max(collective_free_, compute_free_);
    launch(kBackwardThread, kCollectiveStream, nullptr, 420'000);
    complete("cpu_op", "record_param_comms", kProcess, kBackwardThread, start, now_ - start);
    put("\"External id\": {},\"Record function id\": {}, ", external_, external_);
    collective_arguments();
    end_arguments();
    ++external_;
    ++counts_.host_ops;
  }
  void collective_arguments() {
    put("\"Collective name\": \"allreduce\", \"In msg nelems\": 33554432, "
        "\"Out msg nelems\": 33554432, \"Group size\": {}, \"dtype\": \"BFloat16\", "
        "\"Process Group Name\": \"0\", \"Process Group Description\": \"default_pg\"",
        rank_.world_size);
  }

  void step() {
    launches_.clear();
    const std::uint64_t begin = now_;
    for (int layer = 0; layer < kLayers; ++layer)
      for (const Operator& op : kLayer) run(op, kProcess, "");
    const std::uint64_t backward = now_;
    for (int layer = 0; layer < kLayers; ++layer) {
      for (const Operator& op : kLayer)
        if (!op.inner.empty()) run(op, kBackwardThread, "autograd::engine::evaluate_function: ");
      all_reduce();
    }
    // The main thread waits for the backward thread in an operator, then for the device.
    host_op("autograd::backward", kProcess, backward, now_ - backward, kLayer[2]);
    const std::uint64_t wait = now_ += around(2'000);
    now_ = std::max({now_, compute_free_, collective_free_}) + around(6'000);
    for (const Launch& l : launches_) call_and_kernel(l);
    complete("cuda_runtime", "cudaDeviceSynchronize", kProcess, kProcess, wait, now_ - wait);
    put("\"External id\": {}, \"cbid\": 165, \"correlation\": {}", external_, correlation_++);
    end_arguments();
    now_ += around(20'000);
    complete("user_annotation", fmt::format("ProfilerStep#{}", counts_.steps), kProcess, kProcess,
             begin, now_ - begin);
    put("\"External id\": {}, \"Record function id\": 0, \"Ev Idx\": {}", external_, external_);
    end_arguments();
    ++external_;
    now_ += around(5'000);
    counts_.host_ops += 2;
    ++counts_.steps;
    write_out();
  }

  void call_and_kernel(const Launch& l) {
    const std::uint64_t id = correlation_++;
    complete("cuda_runtime", l.op ? "cudaLaunchKernel" : "cudaLaunchKernelExC", kProcess, l.thread,
             l.call, l.call_duration);
    put("\"External id\": {}, \"cbid\": {}, \"correlation\": {}", l.external, l.op ? 211 : 430, id);
    end_arguments();
    flow('s', id, kProcess, l.thread, l.call);
    complete("kernel",
             l.op ? l.op->kernel
                  : "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
             0, l.stream, l.start, l.duration);
    put("\"External id\": {}, \"queued\": 0, \"device\": 0, \"context\": 1, \"stream\": {}, "
        "\"correlation\": {}, \"registers per thread\": {}, \"shared memory\": {}, "
        "\"blocks per SM\": {:.6f}, \"warps per SM\": {:.6f}, \"grid\": [{}, 1, 1], "
        "\"block\": [128, 1, 1], \"est. achieved occupancy %\": {}",
        l.external, l.stream, id, l.op ? 40 : 96, l.op ? 2048 : 82240,
        (l.op ? l.op->grid : 24) / 132.0, (l.op ? l.op->grid : 24) / 33.0, l.op ? l.op->grid : 24,
        l.op ? 75 : 3);
    if (!l.op) {
      put(", ");
      collective_arguments();
    }
    end_arguments();
    flow('f', id, 0, l.stream, l.start);
    ++counts_.host_ops;
    ++counts_.gpu_ops;
  }

  std::FILE* file_;
  SyntheticRank rank_;
  SyntheticCounts counts_;
  std::string text_;
  bool first_ = true;
  std::vector<Launch> launches_;
  std::uint64_t now_ = kBase;
  std::uint64_t compute_free_ = 0;
  std::uint64_t collective_free_ = 0;
  std::uint64_t random_ = 12345;
  std::uint64_t external_ = 1;
  std::uint64_t sequence_ = 1;
  std::uint64_t correlation_ = 1;
};

}  // namespace

SyntheticCounts write_kineto(std::FILE* file, std::uint64_t bytes, const SyntheticRank& rank) {
  return Writer(file, rank).write(bytes);
}

}  // namespace rehearse::bench
