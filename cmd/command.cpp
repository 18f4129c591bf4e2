#include "cmd/command.hpp"

namespace mailroom {

CLI::Option* add_setting(CLI::App& app, Overrides& overrides, const std::string& flag, const std::string& key,
                         const std::string& help) {
  const auto store = [&overrides, flag, key](const std::string& text) {
    overrides.flags.push_back({key, text, flag});
  };
  return app.add_option_function<std::string>(flag, store, help)->option_text("VALUE")->type_name(key);
}

CLI::Option* add_action(CLI::App& app, std::string& value) {
  const Choices<std::string> choices{{"activation", "activation"},
                                     {"recovery", "password_recovery"},
                                     {"password_recovery", "password_recovery"}};
  return add_choice(app, "--action", value, choices, "activation or recovery")->option_text("ACTION");
}

}  // namespace mailroom
