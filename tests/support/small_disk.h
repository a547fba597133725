// A file system of a few hundred kilobytes.
#pragma once

#include <filesystem>

#include <sys/mount.h>

namespace rehearse::test {

/// Mounts it on a folder, if we may, until it goes out of scope.
class SmallDisk {
 public:
  explicit SmallDisk(std::filesystem::path folder) : folder_(std::move(folder)) {
    mounted_ = ::mount("none", folder_.c_str(), "tmpfs", 0, "size=256k") == 0;
  }
  ~SmallDisk() {
    if (mounted_) ::umount2(folder_.c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  bool mounted() const { return mounted_; }

 private:
  std::filesystem::path folder_;
  bool mounted_;
};

}  // namespace rehearse::test
