// The seam to an API that programs know: it makes of a request what is asked for, and of what became of it an
// answer. All else of the service knows no word of it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/clock.hpp"
#include "base/json.hpp"
#include "http_door/remote_file.hpp"

namespace mailroom::http_door {

/// Why a request has no answer that it wants.
enum class Problem {
  no_key,
  bad_key,
  sending_key,  ///< it may send, and not do this
  no_right,     ///< the role may not ask for this
  foreign_sender,
  no_such_path,
  no_such_message,
  no_such_method,
  too_large,
  encoded,  ///< Content-Encoding
  no_json,
  bad_request,  ///< HTTP
  bad_idempotency_key,
  missing_field,
  bad_value,
  bad_parameter,
  bad_attachment,
  other_content,  ///< the idempotency key is of another request
  key_is_busy,
  over_rate,
  unavailable,  ///< nothing was stored
  not_known,    ///< whether it was stored
};

struct Fault {
  Problem problem{};
  std::string message{};
  std::optional<std::chrono::seconds> wait{};  ///< until it may be asked for again
};

/// A request with its body.
struct Request {
  std::string method{};
  std::string path{};                                          ///< as it came
  std::vector<std::pair<std::string, std::string>> headers{};  ///< names in lower case
  std::string body{};

  /// The value of a header; nullopt without it.
  std::optional<std::string_view> header(std::string_view name) const;
};

/// What is the same for all requests of a role.
struct RoleView {
  std::vector<std::string> senders{};  ///< addresses and @domains; empty: any
  bool header_options = true;
  bool may_only_send = false;
};

/// What stands in for what a request leaves out.
struct Defaults {
  Moment now{};
  std::string timezone{};                       ///< of times without one
  std::string from{};                           ///< the sender of a mail that names none
  std::vector<std::string> attachment_hosts{};  ///< of which files may be fetched
};

/// Mails to be stored, each as the arguments of mailroom_send() in an object of JSON; all or, if it is
/// permissive, those that can be.
struct Post {
  std::vector<nlohmann::json> mails{};
  bool is_batch = false;
  bool is_permissive = false;
  std::optional<std::string> key{};
  std::string digest{};                                    ///< of all mails of a batch
  std::vector<std::size_t> places{};                       ///< of the mails in the request
  std::vector<std::pair<std::size_t, std::string>> bad{};  ///< places, and what is wrong there
  std::vector<RemoteFile> files{};  ///< of the one mail: the `content` of their attachments is to be fetched
};
struct Get {
  std::string id{};
};
struct List {
  int limit = 20;
  std::string older_than{};
  std::string newer_than{};
};
struct Move {
  std::string id{};
  Moment to{};
};
struct Cancel {
  std::string id{};
};
using Operation = std::variant<Post, Get, List, Move, Cancel>;

/// One of several mails that was stored, or why it was not.
struct Stored {
  std::size_t place = 0;
  std::string id{};
  std::string problem{};
};

struct Answer {
  int status = 200;
  std::string body{};
};

class Shape {
 public:
  Shape() = default;
  virtual ~Shape() = default;
  Shape(const Shape&) = delete;
  Shape& operator=(const Shape&) = delete;

  /// How each key begins.
  virtual std::string_view key_prefix() const = 0;
  /// The methods of a path, for Allow; empty if there is no such path.
  virtual std::string methods_of(const std::string& path) const = 0;
  /// True if a key that may only send may ask for this.
  virtual bool is_sending(const std::string& method, const std::string& path) const = 0;
  virtual std::variant<Operation, Fault> read(const Request& request, const RoleView& role,
                                              const Defaults& defaults) const = 0;

  virtual Answer posted(const Post& post, const std::vector<Stored>& stored) const = 0;
  /// `mail` and `mails` are rows of mailroom_email() and mailroom_emails().
  virtual Answer got(const nlohmann::json& mail, const Defaults& defaults) const = 0;
  virtual Answer listed(const nlohmann::json& mails, bool has_more, const Defaults& defaults) const = 0;
  virtual Answer changed(const std::string& id) const = 0;
  virtual Answer fault(const Fault& fault) const = 0;
  /// The words of the database about a mail that it refuses; `place`: of a batch.
  virtual Fault refusal(const std::string& words, std::optional<std::size_t> place) const = 0;
};

}  // namespace mailroom::http_door
