package receiver

import (
	"bytes"
	"crypto/md5"  //nolint:gosec // a checksum against errors of transmission
	"crypto/sha1" //nolint:gosec // the one that every tus server has
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"hash/crc32"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Keys of the metadata that this package reads.
const (
	metaFilename = "filename"
	metaName     = "name"     // what some clients send instead
	metaType     = "filetype" // a media type
	metaSHA256   = "sha256"   // of the whole file, hexadecimal
	metaPartOf   = "part-of"  // see parsePlace
	// metaToken is the same in all creations by which a client wants one upload: isGroup, chosen at random.
	metaToken = "stint-upload"
)

const metadataMax = 16 << 10 // bytes of the headers

// parseSize reads a number of bytes: decimal digits only.
func parseSize(text string) (int64, bool) {
	if text == "" || len(text) > 19 || strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil
}

// parseMetadata reads the Upload-Metadata of tus: pairs of a key and a value in base64,
// separated by commas. A value may be missing.
func parseMetadata(text string) (map[string]string, error) {
	if len(text) > metadataMax {
		return nil, refuse(http.StatusRequestHeaderFieldsTooLarge, "Upload-Metadata has more than %d bytes", metadataMax)
	}
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	all := map[string]string{}
	for pair := range strings.SplitSeq(text, ",") {
		key, value, _ := strings.Cut(strings.TrimSpace(pair), " ")
		decoded, err := base64.StdEncoding.DecodeString(strings.TrimSpace(value))
		if key == "" || err != nil || !utf8.ValidString(key) {
			return nil, refuse(statusBadRequest, "Upload-Metadata: %.80q is not a key and a value in base64", pair)
		}
		if _, twice := all[key]; twice {
			return nil, refuse(statusBadRequest, "Upload-Metadata has the key %.80q twice", key)
		}
		// The journal is JSON, which holds text only.
		all[key] = strings.ToValidUTF8(string(decoded), "\uFFFD")
	}
	if want, ok := all[metaSHA256]; ok {
		if sum, err := hex.DecodeString(want); err != nil || len(sum) != sha256.Size {
			return nil, refuse(statusBadRequest, "the metadata %q must be a SHA-256 in hexadecimal", metaSHA256)
		}
	}
	return all, nil
}

// place is where a part belongs: its group, and its range in the group's file.
type place struct {
	group         string
	offset, total int64 // bytes
}

// parsePlace reads the metadata "part-of": the group, the part's offset in the whole file
// and the size of that, separated by spaces. The client chooses the name of the group: 16
// to 64 letters, digits, - and _, at random, since knowing it gives access.
func parsePlace(text string) (place, error) {
	fields := strings.Split(text, " ")
	if len(fields) == 3 && isGroup(fields[0]) {
		offset, ok := parseSize(fields[1])
		total, alsoOK := parseSize(fields[2])
		if ok && alsoOK && offset <= total {
			return place{group: fields[0], offset: offset, total: total}, nil
		}
	}
	return place{}, refuse(statusBadRequest,
		"the metadata %q must be a group of 16 to 64 letters and digits, an offset and the total size", metaPartOf)
}

func isGroup(text string) bool {
	const least, most = 16, 64
	for _, c := range []byte(text) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (c < '0' || c > '9') && c != '-' && c != '_' {
			return false
		}
	}
	return len(text) >= least && len(text) <= most
}

// checksumTable has the algorithms of the extension checksum, in the order in which they
// are announced.
var checksumTable = []struct {
	name string
	size int              // bytes
	make func() hash.Hash // nil for the CRC32C, which the journal needs of each body anyway
}{
	{"sha256", sha256.Size, sha256.New},
	{"sha1", sha1.Size, sha1.New},
	{"md5", md5.Size, md5.New},
	{"crc32", crc32.Size, func() hash.Hash { return crc32.NewIEEE() }},
	{"crc32c", crc32.Size, nil},
}

// checksum is the checksum that a request gives for its body.
type checksum struct {
	want []byte
	hash hash.Hash // which gets the body; nil for the CRC32C
}

// matches reports whether the body that hash has got has the checksum. crc is the CRC32C of the
// body.
func (c *checksum) matches(crc uint32) bool {
	if c.hash == nil {
		return bytes.Equal(c.want, binary.BigEndian.AppendUint32(nil, crc))
	}
	return bytes.Equal(c.want, c.hash.Sum(nil))
}

func checksumNames() string {
	names := make([]string, len(checksumTable))
	for i, row := range checksumTable {
		names[i] = row.name
	}
	return strings.Join(names, ",")
}

// parseChecksum reads an Upload-Checksum: the name of an algorithm and the checksum in
// base64. It returns nil for an absent header.
func parseChecksum(text string) (*checksum, error) {
	if text == "" {
		return nil, nil
	}
	name, value, _ := strings.Cut(text, " ")
	for _, row := range checksumTable {
		if row.name != name {
			continue
		}
		want, err := base64.StdEncoding.DecodeString(value)
		if err != nil || len(want) != row.size {
			return nil, refuse(statusBadRequest, "Upload-Checksum: a %s in base64 has %d bytes", name, row.size)
		}
		c := &checksum{want: want}
		if row.make != nil {
			c.hash = row.make()
		}
		return c, nil
	}
	return nil, refuse(statusBadRequest, "Upload-Checksum: %.40q is not one of %s", name, checksumNames())
}

// parseConcat reads an Upload-Concat: whether the upload is a part, or which parts it is
// made of. The parts are the last elements of their URLs' paths.
func parseConcat(text string) (partial bool, parts []string, err error) {
	switch list, final := strings.CutPrefix(text, "final;"); {
	case text == "":
		return false, nil, nil
	case text == "partial":
		return true, nil, nil
	case final:
		for url := range strings.FieldsSeq(list) {
			parts = append(parts, url[strings.LastIndexByte(url, '/')+1:])
		}
		if len(parts) > 0 && len(parts) <= lanesMax {
			return false, parts, nil
		}
	}
	return false, nil, refuse(statusBadRequest, `Upload-Concat must be "partial" or "final;" and the URLs of the parts`)
}

// parseDigest reads the member sha-256 of a Content-Digest or Repr-Digest (RFC 9530), a
// dictionary of byte sequences (RFC 9651). It returns nil if there is none.
func parseDigest(text string) ([]byte, error) {
	for member := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(member), "=")
		if name != "sha-256" {
			continue
		}
		inner, ok := strings.CutPrefix(value, ":")
		inner, alsoOK := strings.CutSuffix(inner, ":")
		sum, err := base64.StdEncoding.DecodeString(inner)
		if !ok || !alsoOK || err != nil || len(sum) != sha256.Size {
			return nil, refuse(statusBadRequest, "the digest sha-256 must be 32 bytes in base64 between colons")
		}
		return sum, nil
	}
	return nil, nil
}

// parseInteger reads an Integer that is an Item (RFC 9651, section 3.3.1) and is not
// negative. Parameters are ignored.
func parseInteger(text string) (int64, bool) {
	text, _, _ = strings.Cut(text, ";")
	text = strings.TrimSpace(text)
	const digitsMax = 15
	if len(text) > digitsMax {
		return 0, false
	}
	return parseSize(text)
}

// parseBoolean reads a Boolean that is an Item (RFC 9651, section 3.3.6). Parameters are
// ignored.
func parseBoolean(text string) (value, ok bool) {
	text, _, _ = strings.Cut(text, ";")
	switch strings.TrimSpace(text) {
	case "?1":
		return true, true
	case "?0":
		return false, true
	}
	return false, false
}

// metadataOf returns what the usual headers of a request say about its file.
func metadataOf(req *http.Request) (map[string]string, error) {
	meta := map[string]string{}
	disposition, kind := req.Header.Get("Content-Disposition"), req.Header.Get("Content-Type")
	if len(disposition)+len(kind)+len(req.URL.Path) > metadataMax {
		return nil, refuse(http.StatusRequestHeaderFieldsTooLarge,
			"Content-Disposition, Content-Type and the name have more than %d bytes", metadataMax)
	}
	_, params, err := mime.ParseMediaType(disposition)
	if name := params["filename"]; err == nil && name != "" {
		meta[metaFilename] = strings.ToValidUTF8(name, "\uFFFD")
	}
	if kind, _, err := mime.ParseMediaType(kind); err == nil {
		meta[metaType] = kind
	}
	sum, err := parseDigest(strings.Join(req.Header.Values("Repr-Digest"), ","))
	if sum != nil {
		meta[metaSHA256] = hex.EncodeToString(sum)
	}
	return meta, err
}
