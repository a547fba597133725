// PagedMap: a map from mostly dense ids to small values, in pages made on first use.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>

namespace rehearse {

template <class Value>
class PagedMap {
 public:
  /// The value at `id`, value-initialised on first use.
  Value& operator[](std::uint64_t id) {
    const std::uint64_t page = id / kPageSize;
    if (!last_ || page != last_page_) {
      std::unique_ptr<Page>& slot = pages_[page];
      if (!slot) slot = std::make_unique<Page>();
      last_ = slot.get();
      last_page_ = page;
    }
    return (*last_)[id % kPageSize];
  }

  /// Calls visit(id, value) for every id of every page in use, in no particular order.
  template <class Visit>
  void for_each(Visit visit) const {
    for (const auto& [page, values] : pages_)
      for (std::size_t i = 0; i < kPageSize; ++i) visit(page * kPageSize + i, (*values)[i]);
  }

 private:
  static constexpr std::size_t kPageSize = 64;
  using Page = std::array<Value, kPageSize>;

  std::unordered_map<std::uint64_t, std::unique_ptr<Page>> pages_;
  Page* last_ = nullptr;
  std::uint64_t last_page_ = 0;
};

}  // namespace rehearse
