// NamePool: each distinct text once, addressed by a dense NameId.
//
// Invariants:
//  1. Equal texts have equal ids; ids count up from 0 in the order of first use.
//  2. A view of a name stays valid as long as the pool, or any copy of it made later, lives.
#pragma once

#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sim/base/ids.h"

namespace rehearse {

class NamePool {
 public:
  NamePool() = default;
  NamePool(const NamePool& other)
      : texts_(other.texts_), ids_(other.ids_), blocks_(other.blocks_) {}
  NamePool(NamePool&&) = default;
  NamePool& operator=(const NamePool& other) { return *this = NamePool(other); }
  NamePool& operator=(NamePool&&) = default;

  NameId intern(std::string_view text);
  std::string_view operator[](NameId id) const { return texts_[id.index()]; }
  std::size_t size() const { return texts_.size(); }

 private:
  std::vector<std::string_view> texts_;
  std::unordered_map<std::string_view, NameId> ids_;
  // Texts live in blocks that are never moved and that copies share; a copy starts its own block.
  std::vector<std::shared_ptr<char[]>> blocks_;
  char* free_ = nullptr;
  std::size_t free_size_ = 0;
};

}  // namespace rehearse
