package archtest_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"testing"
)

var errorName = regexp.MustCompile(`^Err[A-Z]|^[A-Z]\w*Error$`)

// TestErrorsAreDocumented: callers see an error long before its code, so each error says
// when it is returned. The linter requires that of a single declaration, but accepts one
// comment for a whole block.
func TestErrorsAreDocumented(t *testing.T) { hold(t, bareErrors) }

func bareErrors(f *goFile) (bare []string) {
	if f.isTest() {
		return nil
	}
	for _, decl := range f.ast.Decls {
		block, ok := decl.(*ast.GenDecl)
		if !ok || (block.Tok != token.VAR && block.Tok != token.TYPE) {
			continue
		}
		for _, spec := range block.Specs {
			for _, name := range undocumentedErrors(block, spec) {
				bare = append(bare,
					fmt.Sprintf("%s: %s has no doc comment of its own: say when it is returned", f.at(name), name.Name))
			}
		}
	}
	return bare
}

func undocumentedErrors(block *ast.GenDecl, spec ast.Spec) []*ast.Ident {
	var names []*ast.Ident
	var doc *ast.CommentGroup
	switch s := spec.(type) {
	case *ast.ValueSpec:
		names, doc = s.Names, s.Doc
	case *ast.TypeSpec:
		names, doc = []*ast.Ident{s.Name}, s.Doc
	}
	if doc == nil && !block.Lparen.IsValid() {
		doc = block.Doc
	}
	var bare []*ast.Ident
	for _, name := range names {
		if doc == nil && errorName.MatchString(name.Name) {
			bare = append(bare, name)
		}
	}
	return bare
}
