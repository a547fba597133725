#include "profiler/ingest/byte_source.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <vector>

#include <fmt/core.h>
#include <zlib.h>

namespace rehearse::ingest {
namespace {

using FilePtr = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

class PlainFile final : public ByteSource {
 public:
  PlainFile(FilePtr file, std::uintmax_t size)
      : file_(std::move(file)), size_(static_cast<double>(size)) {}

  std::size_t read(std::span<char> into) override {
    const std::size_t n = std::fread(into.data(), 1, into.size(), file_.get());
    done_ += static_cast<double>(n);
    if (n < into.size() && std::ferror(file_.get())) damage_ = std::strerror(errno);
    return n;
  }
  double share() const override { return size_ > 0 ? std::min(1.0, done_ / size_) : 1; }
  std::string damage() const override { return damage_; }

 private:
  FilePtr file_;
  double size_;
  double done_ = 0;
  std::string damage_;
};

class GzipFile final : public ByteSource {
 public:
  explicit GzipFile(std::unique_ptr<ByteSource> packed) : packed_(std::move(packed)) {
    constexpr int kGzipOnly = 15 + 16;  // window bits and, by convention, 16 for the gzip wrapper
    ready_ = inflateInit2(&stream_, kGzipOnly) == Z_OK;
    if (!ready_) damage_ = "out of memory";
  }
  ~GzipFile() override {
    if (ready_) inflateEnd(&stream_);
  }
  GzipFile(const GzipFile&) = delete;
  GzipFile& operator=(const GzipFile&) = delete;

  std::size_t read(std::span<char> into) override {
    stream_.next_out = reinterpret_cast<Bytef*>(into.data());
    stream_.avail_out = static_cast<uInt>(into.size());
    while (stream_.avail_out > 0 && damage_.empty() && !ended_) step();
    return into.size() - stream_.avail_out;
  }
  double share() const override { return packed_->share(); }
  std::string damage() const override { return damage_; }

 private:
  void step() {
    if (stream_.avail_in == 0 && !refill()) {
      if (between_members_) {
        ended_ = true;
      } else {
        damage_ = packed_->damage().empty() ? "the gzip data are truncated" : packed_->damage();
      }
      return;
    }
    between_members_ = false;
    const int code = inflate(&stream_, Z_NO_FLUSH);
    if (code == Z_STREAM_END) {  // a gzip file may have several members
      between_members_ = true;
      inflateReset(&stream_);
    } else if (code != Z_OK) {
      damage_ = fmt::format("the gzip data are damaged ({})",
                            stream_.msg ? stream_.msg : "unexpected bytes");
    }
  }

  bool refill() {
    const std::size_t n = packed_->read(input_);
    stream_.next_in = reinterpret_cast<Bytef*>(input_.data());
    stream_.avail_in = static_cast<uInt>(n);
    return n > 0;
  }

  std::unique_ptr<ByteSource> packed_;
  std::vector<char> input_ = std::vector<char>(std::size_t{1} << 16);
  z_stream stream_ = {};
  bool ready_ = false;
  bool between_members_ = false;
  bool ended_ = false;
  std::string damage_;
};

class MemoryBytes final : public ByteSource {
 public:
  explicit MemoryBytes(std::string_view bytes) : bytes_(bytes) {}

  std::size_t read(std::span<char> into) override {
    const std::size_t n = std::min(into.size(), bytes_.size() - at_);
    if (n > 0) std::memcpy(into.data(), bytes_.data() + at_, n);
    at_ += n;
    return n;
  }
  double share() const override {
    return bytes_.empty() ? 1 : static_cast<double>(at_) / static_cast<double>(bytes_.size());
  }
  std::string damage() const override { return {}; }

 private:
  std::string_view bytes_;
  std::size_t at_ = 0;
};

bool is_gzip(std::string_view first) { return first.starts_with("\x1f\x8b"); }

}  // namespace

Result<std::unique_ptr<ByteSource>> open_bytes(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return fail_in(path, "is a folder", "a file");
  FilePtr file(std::fopen(path.c_str(), "rb"), &std::fclose);
  if (!file) return fail_in(path, fmt::format("cannot be read: {}", std::strerror(errno)));
  char magic[2] = {};
  const std::size_t n = std::fread(magic, 1, sizeof magic, file.get());
  std::rewind(file.get());
  const std::uintmax_t size = std::filesystem::file_size(path, ignored);
  auto plain = std::make_unique<PlainFile>(std::move(file), ignored ? 0 : size);
  if (!is_gzip({magic, n})) return plain;
  return std::make_unique<GzipFile>(std::move(plain));
}

std::unique_ptr<ByteSource> bytes_in_memory(std::string_view bytes) {
  auto plain = std::make_unique<MemoryBytes>(bytes);
  if (!is_gzip(bytes)) return plain;
  return std::make_unique<GzipFile>(std::move(plain));
}

Result<std::string> read_all(ByteSource& source, const std::string& name, std::size_t most) {
  std::string bytes;
  constexpr std::size_t kChunk = std::size_t{1} << 20;
  for (std::size_t read = kChunk; read == kChunk;) {
    const std::size_t before = bytes.size();
    bytes.resize(before + kChunk);
    read = source.read(std::span(bytes).subspan(before));
    bytes.resize(before + read);
    if (bytes.size() > most)
      return fail_in(name, "is too large", fmt::format("at most {} MiB", most >> 20));
  }
  if (!source.damage().empty()) return fail_in(name, source.damage());
  return bytes;
}

}  // namespace rehearse::ingest
