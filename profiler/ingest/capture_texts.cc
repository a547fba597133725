#include "profiler/ingest/capture_texts.h"

#include <cstdlib>
#include <memory>

#include <cxxabi.h>
#include <fmt/core.h>

#include "profiler/ingest/torch_ranges.h"
#include "sim/base/utf8.h"

namespace rehearse::ingest {
namespace {

/// The demangled name; a name that is not mangled is returned as it is. Kernels may be written in
/// C, or come from something other than a C++ compiler.
std::string demangled(const std::string& name) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 && text ? std::string(text.get()) : name;
}

}  // namespace

void CaptureTexts::add(const capture::NumberedText& text) {
  std::string content = sound(text.text);
  CaptureText entry{.name = NameId(0)};
  if (content.starts_with("_Z")) {
    entry.name = recorder_.name(demangled(content));
  } else if (const auto range = parse_torch_range(content)) {
    entry.name = recorder_.name(range->name);
    entry.is_operator = range->is_operator;
    entry.sequence = range->sequence;
    entry.op_id = range->op_id;
    if (range->is_operator && !range->shapes.empty())
      entry.inputs = recorder_.inputs(range->shapes, "");
  } else {
    entry.name = recorder_.name(content);
  }
  texts_.insert_or_assign(text.number, entry);
}

const CaptureText* CaptureTexts::find(std::uint64_t number) const {
  if (number > UINT32_MAX) return nullptr;
  const auto at = texts_.find(static_cast<std::uint32_t>(number));
  return at == texts_.end() ? nullptr : &at->second;
}

std::optional<NameId> CaptureTexts::name(std::uint64_t number) const {
  if (number == 0) return recorder_.name("(unnamed)");
  const CaptureText* text = find(number);
  return text ? std::optional(text->name) : std::nullopt;
}

trace::ThreadId CaptureTexts::thread(std::uint32_t number) {
  if (last_thread_ && last_number_ == number) return *last_thread_;
  auto [at, is_new] = threads_.try_emplace(number, trace::ThreadId(0));
  if (is_new) {
    std::string label = fmt::format("{}", number);
    if (const auto named = thread_names_.find(number); named != thread_names_.end())
      if (const CaptureText* text = find(named->second))
        label += fmt::format(" {}", recorder_.names()[text->name]);
    at->second = recorder_.thread(process_, label);
  }
  last_number_ = number;
  last_thread_ = at->second;
  return at->second;
}

std::string CaptureTexts::sound(std::string_view text) {
  std::uint64_t replaced = 0;
  std::string sound = sound_text(text, replaced);
  if (replaced > 0) recorder_.problem(trace::ProblemKind::kInvalidText);
  return sound;
}

}  // namespace rehearse::ingest
