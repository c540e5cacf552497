// SPDX-License-Identifier: Apache-2.0
// A plugin of clang-tidy: its checks visit only declarations outside system headers. clang-tidy 19 runs every
// check over every declaration that it parsed and then drops what it found in system headers, which is three
// quarters of its time here. tests/check/tidy.py builds it and passes it as --load.
#include <clang/AST/ASTConsumer.h>
#include <clang/AST/ASTContext.h>
#include <clang/Basic/SourceManager.h>
#include <clang/Frontend/FrontendPluginRegistry.h>

#include <memory>
#include <string>
#include <vector>

namespace {

class OwnDeclarations : public clang::ASTConsumer {
 public:
  void HandleTranslationUnit(clang::ASTContext& context) override {
    const clang::SourceManager& sources = context.getSourceManager();
    std::vector<clang::Decl*> own;
    // Not what is loaded from precompiled headers, which are system headers too.
    for (clang::Decl* declaration : context.getTranslationUnitDecl()->noload_decls()) {
      if (!sources.isInSystemHeader(sources.getExpansionLoc(declaration->getLocation())))
        own.push_back(declaration);
    }
    context.setTraversalScope(own);
  }
};

class BeforeTheChecks : public clang::PluginASTAction {
 public:
  std::unique_ptr<clang::ASTConsumer> CreateASTConsumer(clang::CompilerInstance&, llvm::StringRef) override {
    return std::make_unique<OwnDeclarations>();
  }
  bool ParseArgs(const clang::CompilerInstance&, const std::vector<std::string>&) override { return true; }
  ActionType getActionType() override { return AddBeforeMainAction; }
};

const clang::FrontendPluginRegistry::Add<BeforeTheChecks> kRegistration(
    "own-declarations", "skip declarations of system headers");

}  // namespace
