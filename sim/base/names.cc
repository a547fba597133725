#include "sim/base/names.h"

#include <algorithm>
#include <cstring>

namespace rehearse {

NameId NamePool::intern(std::string_view text) {
  if (const auto found = ids_.find(text); found != ids_.end()) return found->second;
  constexpr std::size_t kBlock = 1 << 16;
  if (text.size() > free_size_) {
    free_size_ = std::max(kBlock, text.size());
    blocks_.emplace_back(new char[free_size_]);
    free_ = blocks_.back().get();
  }
  if (!text.empty()) std::memcpy(free_, text.data(), text.size());
  const std::string_view stored(free_, text.size());
  free_ += text.size();
  free_size_ -= text.size();
  const NameId id(texts_.size());
  texts_.push_back(stored);
  ids_.emplace(stored, id);
  return id;
}

}  // namespace rehearse
