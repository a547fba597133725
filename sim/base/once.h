// Once: expensive values, computed once and requested by several threads.
#pragma once

#include <map>
#include <mutex>
#include <optional>

namespace rehearse {

/// One value for each key, made once by the first thread that requests it, while others wait.
/// Values do not move.
template <class Key, class T>
class Once {
 public:
  /// `make` returns the value. It must not request the same key.
  template <class Make>
  const T& of(const Key& key, const Make& make) {
    Slot* slot = nullptr;
    {
      const std::lock_guard lock(mutex_);
      slot = &slots_[key];
    }
    std::call_once(slot->once, [&] { slot->value.emplace(make()); });
    return *slot->value;
  }

 private:
  struct Slot {
    std::once_flag once;
    std::optional<T> value;
  };
  std::mutex mutex_;
  std::map<Key, Slot> slots_;
};

}  // namespace rehearse
