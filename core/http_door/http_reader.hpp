// Reads the requests of one connection, without a socket (RFC 9112). What could be read in two ways ends the
// connection.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "http_door/shape.hpp"

namespace mailroom::http_door {

class HttpReader {
 public:
  enum class Event {
    more,       ///< it needs more bytes
    head,       ///< the head has come: look at it, then go_on()
    whole,      ///< the request has come: take it
    malformed,  ///< no HTTP that can be read: answer, and close
    too_large,  ///< likewise, of the head or the body
  };

  explicit HttpReader(std::size_t most_body) : most_body_(most_body) {}

  /// Removes from `bytes` what it has taken.
  Event take(std::string_view& bytes);
  /// The body may come. `keeps`: else it is read and forgotten.
  void go_on(bool keeps);
  /// The request, of which the head has come, or all.
  const Request& request() const { return request_; }
  Request take_request();

  bool has_begun() const { return state_ != State::first_line || !line_.empty(); }
  bool has_body() const { return is_chunked_ || left_ > 0; }
  bool wants_continue() const { return wants_continue_; }
  /// True if the connection may have another request.
  bool keeps_alive() const { return keeps_alive_; }
  std::size_t held() const { return request_.body.size(); }
  std::string_view problem() const { return problem_; }

 private:
  enum class State { first_line, headers, head, body, chunk_size, chunk, chunk_end, trailers, whole, broken };

  Event take_line(std::string_view& bytes);
  Event line(std::string_view line);
  Event first_line(std::string_view line);
  Event header(std::string_view line);
  Event end_of_head();
  Event chunk_size(std::string_view line);
  Event take_body(std::string_view& bytes);
  Event broken(std::string_view why);
  Event larger();

  const std::size_t most_body_;
  State state_ = State::first_line;
  std::string line_;
  std::size_t head_size_ = 0;
  Request request_;
  bool is_old_ = false;  ///< HTTP/1.0
  bool is_chunked_ = false;
  bool wants_continue_ = false;
  bool keeps_alive_ = true;
  bool keeps_body_ = true;
  std::size_t left_ = 0;
  std::size_t body_size_ = 0;
  std::string_view problem_;
};

}  // namespace mailroom::http_door
