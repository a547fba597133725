#include "cli/live/server.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <utility>

// The headers of asio rely on <utility>.
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/output/json.h"
#include "sim/base/check.h"

namespace rehearse::cli {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using Failure = boost::system::error_code;
using asio::ip::tcp, std::chrono::milliseconds, std::chrono::seconds;

constexpr std::uint32_t kMostHeader = 8 << 10, kMostBody = 64 << 10;
constexpr std::size_t kMostWaiting = 256;
constexpr seconds kPatience{10}, kDrained{1};

std::string random_token() {
  std::array<unsigned char, 16> bytes{};
  std::string token;
  REHEARSE_CHECK(::getrandom(bytes.data(), bytes.size(), 0) == std::ssize(bytes));
  for (const unsigned char byte : bytes) token += fmt::format("{:02x}", byte);
  return token;
}

/// In a time that does not depend on where the texts differ.
bool same(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  int difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) difference |= a[i] ^ b[i];
  return difference == 0;
}

Reply refusal(unsigned status, std::string_view why) {
  return {.status = status,
          .type = "application/json",
          .body = fmt::format("{{\"errors\": [{{\"message\": {}}}]}}\n", json_quoted(why))};
}

/// What the process of an answer writes: status, type and file in a line each, then the body.
std::string packed(const Reply& reply) {
  return fmt::format("{}\n{}\n{}\n{}", reply.status, reply.type, reply.file, reply.body);
}
Reply unpacked(const std::string& text) {
  Reply reply;
  std::size_t from = 0;
  const auto line = [&] {
    const std::size_t end = text.find('\n', from);
    std::string found = end == text.npos ? "" : text.substr(from, end - from);
    from = end == text.npos ? text.size() : end + 1;
    return found;
  };
  reply.status = static_cast<unsigned>(std::atoi(line().c_str()));
  reply.type = line();
  reply.file = line();
  reply.body = text.substr(from);
  return reply;
}

/// The copy of this process that answers. It keeps no file open but the pipe and the standard ones,
/// because a connection lives as long as one process has it.
[[noreturn]] void answer_in_copy(const Site& site, std::string_view path, const std::string& body,
                                 int pipe) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::signal(SIGINT, SIG_IGN);  // a terminal sends it to the server too, which ends this
  constexpr int kPipe = 3;
  if (pipe != kPipe) ::dup2(pipe, kPipe);
  ::close_range(kPipe + 1, ~0U, 0);
  std::string text;
  try {
    text = packed(site.answer(path, body));
  } catch (const std::bad_alloc&) {
    text = packed(refusal(500, "not enough memory; a smaller job"));
  } catch (const std::exception& fault) {
    text = packed(refusal(500, fmt::format("internal error, please report it: {}", fault.what())));
  }
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t n = ::write(kPipe, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    done += static_cast<std::size_t>(n);
  }
  ::_exit(0);
}

class Connection;

struct Server {
  Server(asio::io_context& context, const Site& what, std::string secret)
      : io(context), site(what), token(std::move(secret)) {}
  asio::io_context& io;
  const Site& site;
  std::string token;
  std::deque<std::weak_ptr<Connection>> waiting = {};  ///< for a whole request, oldest first
  std::map<std::string, std::weak_ptr<Connection>> running = {};  ///< by path
};

/// One request and its reply.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(Server& server, tcp::socket socket)
      : server_(server),
        stream_(std::move(socket)),
        pipe_(server.io),
        buffer_(kMostHeader + kMostBody) {
    parser_.header_limit(kMostHeader);
    parser_.body_limit(kMostBody);
  }
  ~Connection() { end(); }

  void start() {
    stream_.expires_after(kPatience);
    http::async_read(
        stream_, buffer_, parser_, [self = shared_from_this()](Failure failed, std::size_t) {
          self->read_ = true;
          if (!failed) return self->handle();
          if (failed == http::error::body_limit)
            return self->send(refusal(413, "a request has at most 64 KiB"));
          if (failed == http::error::header_limit)
            return self->send(refusal(431, "a header has at most 8 KiB"));
          if (failed.category() == make_error_code(http::error::bad_method).category() &&
              failed != http::error::end_of_stream)
            self->send(refusal(400, "this is not HTTP"));
        });
  }
  bool waits() const { return !read_; }
  void close() {
    Failure ignored;
    stream_.socket().close(ignored);
  }
  /// Ends the process that answers. A browser that waits for it is told why.
  void end(std::string_view why = {}) {
    if (process_ <= 0) return;
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
    process_ = 0;
    ended_because_ = why;
  }

 private:
  void handle() {
    const auto& request = parser_.get();
    const std::string_view host = header(http::field::host), origin = header(http::field::origin);
    const std::string_view name = host.substr(0, host.rfind(':'));
    // Names of other hosts may resolve to this machine; pages of other origins may post to it.
    if (name != "127.0.0.1" && name != "localhost")
      return send(refusal(403, "this page is for 127.0.0.1 alone"));
    if (!origin.empty() && origin != fmt::format("http://{}", host))
      return send(refusal(403, "this request comes from a page of another origin"));
    std::string_view target(request.target().data(), request.target().size());
    const std::size_t slash = target.find('/', 1);
    if (!target.starts_with('/') || slash == target.npos ||
        !same(target.substr(1, slash - 1), server_.token))
      return send(refusal(404, "the address is not the one that rehearse live printed"));
    target.remove_prefix(slash + 1);
    if (request.method() == http::verb::get && target.empty())
      return send({.type = "text/html; charset=utf-8", .body = server_.site.page});
    const auto& paths = server_.site.paths;
    if (request.method() == http::verb::post && std::ranges::find(paths, target) != paths.end())
      return answer(std::string(target));
    send(refusal(404, "there is no such page"));
  }

  std::string_view header(http::field field) const {
    const auto found = parser_.get()[field];
    return {found.data(), found.size()};
  }

  void answer(const std::string& path) {
    std::weak_ptr<Connection>& before = server_.running[path];
    if (const std::shared_ptr<Connection> other = before.lock())
      other->end("a later change has replaced this one");
    before = weak_from_this();
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return send(refusal(503, "too many open files"));
    process_ = ::fork();
    if (process_ == 0) answer_in_copy(server_.site, path, parser_.get().body(), ends[1]);
    ::close(ends[1]);
    pipe_.assign(ends[0]);
    if (process_ < 0) return send(refusal(503, "no process can be started"));
    stream_.expires_never();
    asio::async_read(pipe_, asio::dynamic_buffer(text_),
                     [self = shared_from_this()](Failure, std::size_t) { self->answered(); });
    stream_.socket().async_wait(tcp::socket::wait_read, [self = weak_from_this()](Failure) {
      const std::shared_ptr<Connection> here = self.lock();
      char byte = 0;
      if (here &&
          ::recv(here->stream_.socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) <= 0)
        here->end("the connection was closed before the answer");
    });
  }

  void answered() {
    if (process_ > 0) ::waitpid(std::exchange(process_, 0), nullptr, 0);
    if (!ended_because_.empty()) return send(refusal(409, ended_because_));
    if (text_.empty()) return send(refusal(500, "the simulation ended by a fault of its own"));
    send(unpacked(text_));
  }

  void send(Reply reply) {
    response_.version(11);
    response_.result(reply.status);
    response_.keep_alive(false);
    response_.set(http::field::content_type, reply.type);
    response_.set(http::field::cache_control, "no-store");
    response_.set("Referrer-Policy", "no-referrer");
    response_.set("X-Content-Type-Options", "nosniff");
    response_.set("X-Frame-Options", "DENY");
    response_.set("Cross-Origin-Resource-Policy", "same-origin");
    if (!reply.file.empty())
      response_.set(http::field::content_disposition,
                    fmt::format("attachment; filename=\"{}\"", reply.file));
    response_.body() = std::move(reply.body);
    response_.prepare_payload();
    stream_.expires_after(kPatience);
    http::async_write(stream_, response_, [self = shared_from_this()](Failure, std::size_t) {
      Failure ignored;
      self->stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
      self->stream_.expires_after(kDrained);
      self->drain();
    });
  }

  /// Reads on until the other side closes: closing with unread bytes would take the reply back.
  void drain() {
    stream_.async_read_some(asio::buffer(unread_),
                            [self = shared_from_this()](Failure failed, std::size_t) {
                              if (!failed) self->drain();
                            });
  }

  Server& server_;
  beast::tcp_stream stream_;
  asio::posix::stream_descriptor pipe_;
  beast::flat_buffer buffer_;
  http::request_parser<http::string_body> parser_;
  http::response<http::string_body> response_;
  std::string text_;  ///< from the process
  std::array<char, 4096> unread_;
  ::pid_t process_ = 0;
  std::string_view ended_because_;
  bool read_ = false;
};

class Listener {
 public:
  Listener(Server& server, tcp::acceptor& acceptor)
      : server_(server), acceptor_(acceptor), pause_(server.io) {}

  void accept() {
    acceptor_.async_accept([this](Failure failed, tcp::socket socket) {
      if (failed == asio::error::operation_aborted) return;
      if (failed) {  // no file descriptor is free: some will be
        pause_.expires_after(milliseconds(50));
        pause_.async_wait([this](Failure) { accept(); });
        return;
      }
      auto& waiting = server_.waiting;
      std::erase_if(waiting, [](const std::weak_ptr<Connection>& each) {
        const std::shared_ptr<Connection> here = each.lock();
        return !here || !here->waits();
      });
      if (waiting.size() >= kMostWaiting) {
        waiting.front().lock()->close();
        waiting.pop_front();
      }
      const auto connection = std::make_shared<Connection>(server_, std::move(socket));
      waiting.push_back(connection);
      connection->start();
      accept();
    });
  }

 private:
  Server& server_;
  tcp::acceptor& acceptor_;
  asio::steady_timer pause_;
};

}  // namespace

Status serve(const Site& site, const std::function<Status(const std::string& address)>& ready) {
  asio::io_context io(1);
  Failure failed;
  tcp::acceptor acceptor(io);
  const tcp::endpoint loopback(asio::ip::address_v4::loopback(), 0);
  acceptor.open(loopback.protocol(), failed);
  if (!failed) acceptor.bind(loopback, failed);
  if (!failed) acceptor.listen(tcp::socket::max_listen_connections, failed);
  if (failed) return fail(fmt::format("no port of 127.0.0.1 is free: {}", failed.message()));
  Server server(io, site, random_token());
  Listener listener(server, acceptor);
  listener.accept();
  asio::signal_set signals(io, SIGINT, SIGTERM);
  signals.async_wait([&](Failure, int) { io.stop(); });
  TRY(ready(
      fmt::format("http://127.0.0.1:{}/{}/", acceptor.local_endpoint().port(), server.token)));
  io.run();
  return {};
}

}  // namespace rehearse::cli
