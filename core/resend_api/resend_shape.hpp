// The shape of Resend's API, which its SDKs speak: paths, fields, answers and errors.
#pragma once

#include "http_door/shape.hpp"

namespace mailroom::resend_api {

class ResendShape : public http_door::Shape {
 public:
  std::string_view key_prefix() const override { return "re_"; }
  std::string methods_of(const std::string& path) const override;
  bool is_sending(const std::string& method, const std::string& path) const override;
  std::variant<http_door::Operation, http_door::Fault> read(
      const http_door::Request& request, const http_door::RoleView& role,
      const http_door::Defaults& defaults) const override;
  http_door::Answer posted(const http_door::Post& post,
                           const std::vector<http_door::Stored>& stored) const override;
  http_door::Answer got(const nlohmann::json& mail, const http_door::Defaults& defaults) const override;
  http_door::Answer listed(const nlohmann::json& mails, bool has_more,
                           const http_door::Defaults& defaults) const override;
  http_door::Answer changed(const std::string& id) const override;
  http_door::Answer fault(const http_door::Fault& fault) const override;
  http_door::Fault refusal(const std::string& words, std::optional<std::size_t> place) const override;
};

}  // namespace mailroom::resend_api
