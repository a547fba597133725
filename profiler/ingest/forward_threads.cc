#include "profiler/ingest/forward_threads.h"

#include "profiler/ingest/torch_ranges.h"

namespace rehearse::ingest {

using trace::HostOp;

void ForwardThreads::add(HostOp op, std::uint32_t thread) {
  if (names_backward_node(recorder_.names()[op.name])) return young_.push_back(op);
  constexpr Nanoseconds kNested{1'000'000};
  Forward& first = first_[*op.sequence];
  if (first.thread == 0)
    first = {op.start, thread};
  else if (first.thread != thread || op.start >= first.start + kNested)
    others_[*op.sequence].push_back({op.start, thread});
  op.forward_thread = 0;
  recorder_.add(op);
}

void ForwardThreads::settle(std::vector<HostOp>& ops) {
  for (HostOp& op : ops) {
    const Forward* latest = nullptr;
    const auto consider = [&](const Forward& forward) {
      if (forward.thread != 0 && forward.start < op.start &&
          (!latest || forward.start >= latest->start))
        latest = &forward;
    };
    consider(first_[*op.sequence]);
    if (const auto found = others_.find(*op.sequence); found != others_.end())
      for (const Forward& forward : found->second) consider(forward);
    if (latest)
      op.forward_thread = latest->thread;
    else
      op.sequence.reset();
    recorder_.add(op);
  }
  ops.clear();
}

void ForwardThreads::turn() {
  settle(old_);
  std::swap(old_, young_);
}

void ForwardThreads::finish() {
  settle(old_);
  settle(young_);
}

}  // namespace rehearse::ingest
